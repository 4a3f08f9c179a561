package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// maxMembers is how many users one request may name.
const maxMembers = 100

// createGroup is the endpoint that creates a group once per key.
func (s *app) createGroup() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[groupRequest, chatdb.Group]{
		Operation: s.operations.createGroup,
		Decode:    decodeGroup,
		Run:       s.runCreateGroup,
		Render:    renderGroup,
		Refuse:    refuseGroup,
	}, s.keyed())
}

func decodeGroup(r *http.Request) (groupRequest, error) {
	in := groupRequest{Members: []int64{}}
	members := usersField(fieldMembers, maxMembers, &in.Members)
	members.optional = true
	if p := readObject(r, textField(fieldName, maxName, &in.Name), members); p != nil {
		return groupRequest{}, p
	}
	return in, nil
}

func (s *app) runCreateGroup(ctx context.Context, c semel.Call, in groupRequest) (chatdb.Group, bool, error) {
	n := chatdb.NewGroup{OwnerID: userIn(ctx).ID, Name: in.Name, Members: in.Members}
	g, replayed, err := once(ctx, s, c, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
		if s.config.mode == modeApart {
			n.Key = c.Key()
			// An operator may have resolved the record as Pending although the group had
			// been created. The group is then the result.
			if g, err := chatdb.GroupByCreation(ctx, tx, n.OwnerID, n.Key); !errors.Is(err, chatdb.ErrNotFound) {
				return g, err
			}
		}
		if err := chatdb.LogCreationTx(ctx, tx, n.OwnerID, c.Key(), attempt(ctx)); err != nil {
			return chatdb.Group{}, err
		}
		g, err := s.create(ctx, tx, n)
		if err != nil {
			return g, err
		}
		return g, s.welcomeAll(ctx, tx, g.ID, g.Members)
	})
	s.worker.Wake()
	return g, replayed, err
}

func renderGroup(w http.ResponseWriter, _ *http.Request, g chatdb.Group) {
	w.Header().Set("Location", "/v1/groups/"+g.ID)
	writeJSON(w, http.StatusCreated, g)
}

// refuseGroup is the response to a creation that has failed. It is built from the
// stored failure, so every caller receives the same.
func refuseGroup(f *semel.Failure) *semelhttp.Problem {
	return problem(f.Code, fieldMembers, "%s Nothing was created, and this key stays refused; use a new one.", f.Message)
}

func (s *app) listGroups(r *http.Request) (any, error) {
	groups, err := chatdb.GroupsOf(r.Context(), s.domain, userIn(r.Context()).ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"groups": groups}, nil
}

func (s *app) getGroup(r *http.Request) (any, error) { return s.groupOfMember(r) }

func (s *app) addMembers(r *http.Request) (any, error) {
	g, err := s.groupOfMember(r)
	if err != nil {
		return nil, err
	}
	if g.OwnerID != userIn(r.Context()).ID {
		return nil, problem(codeNotOwner, "id", "The group is not yours.")
	}
	var users []int64
	if p := readObject(r, usersField(fieldMembers, maxMembers, &users)); p != nil {
		return nil, p
	}
	err = s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		joined, err := chatdb.AddMembersTx(ctx, tx, g.ID, users)
		if err != nil {
			return err
		}
		if err := s.welcomeAll(ctx, tx, g.ID, joined); err != nil {
			return err
		}
		g, err = chatdb.GroupByID(ctx, tx, g.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.worker.Wake()
	return g, nil
}

// groupOfMember returns the group in the path if the caller is a member.
func (s *app) groupOfMember(r *http.Request) (chatdb.Group, error) {
	g, err := chatdb.GroupByID(r.Context(), s.domain, r.PathValue("id"))
	if errors.Is(err, chatdb.ErrNotFound) {
		return g, problem(codeNotFound, "id", "There is no such group.")
	}
	if err != nil {
		return g, err
	}
	member, err := chatdb.IsMember(r.Context(), s.domain, g.ID, userIn(r.Context()).ID)
	if err == nil && !member {
		err = problem(codeNotMember, "id", "You do not belong to the group.")
	}
	return g, err
}
