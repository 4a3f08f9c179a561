package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

func (s groupService) addMembers(r *http.Request) (any, error) {
	var in userSelection
	if p := readObject(r, in.memberFields()...); p != nil {
		return nil, p
	}
	if len(in.MemberIDs)+len(in.MemberNames) == 0 {
		return nil, problem(codeInvalid, fieldMemberIDs, "Name at least one user in %q or %q.", fieldMemberIDs, fieldMemberNames)
	}
	var g chatdb.Group
	user := userIn(r.Context()).ID
	err := s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		users, err := in.users(ctx, tx)
		if err != nil {
			return err
		}
		var joined []int64
		if g, joined, err = s.writer.AddMembers(ctx, tx, r.PathValue("id"), user, users); err != nil {
			return err
		}
		return s.welcomeAll(ctx, tx, g.ID, joined)
	})
	if err != nil {
		return nil, err
	}
	s.worker.Wake()
	return g.For(user), nil
}

// removeMember removes the member in the path, who may be the user: "me" leaves the group.
func (s groupService) removeMember(r *http.Request) (any, error) {
	user := userIn(r.Context()).ID
	member := user
	if text := r.PathValue("user"); text != "me" {
		var err error
		if member, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, problem(codeNotFound, "user", "There is no such user.")
		}
	}
	return nil, s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) error {
		return s.writer.RemoveMember(ctx, tx, r.PathValue("id"), user, member)
	})
}

// moveRead moves the read marker of the user.
func (s groupService) moveRead(r *http.Request) (any, error) {
	var seq int64
	if p := readObject(r, numberField("seq", &seq)); p != nil {
		return nil, p
	}
	group, user := r.PathValue("id"), userIn(r.Context()).ID
	read, moved, err := s.markRead(r.Context(), group, user, seq)
	if err != nil {
		return nil, err
	}
	if moved {
		s.publishRead(r.Context(), group, user, read)
	}
	return map[string]any{"seq": read}, nil
}

// markRead moves the read marker of a member forward, and returns the marker and whether it has moved.
func (s groupService) markRead(ctx context.Context, group string, user, seq int64) (read int64, moved bool, err error) {
	err = s.transact(ctx, func(ctx context.Context, tx chatdb.Tx) (err error) {
		read, moved, err = chatdb.MoveReadTx(ctx, tx, group, user, seq)
		return err
	})
	return read, moved, err
}

// emptyOK responds with 204 and no body to the success of fn.
func (s *app) emptyOK(fn func(r *http.Request) (any, error)) http.Handler {
	return s.authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := fn(r); err != nil {
			s.refuse(w, r, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}
