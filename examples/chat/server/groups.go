package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// groupService has the endpoints of groups and their members. Package chatdb checks in each
// write's transaction that the user may make it.
type groupService struct{ *app }

// maxMembers is how many users one request may name by ID, and how many by name.
const maxMembers = 100

// create is the endpoint that creates a group once per key.
func (s groupService) create() (http.Handler, error) {
	return semelhttp.Handle(semelhttp.Endpoint[groupRequest, chatdb.Group]{
		Operation: s.operations.createGroup,
		Decode:    decodeGroup,
		Run:       s.runCreate,
		Render:    renderGroup,
		Refuse:    refuseGroup,
	}, s.keyed())
}

func decodeGroup(r *http.Request) (groupRequest, error) {
	var in groupRequest
	fields := append(in.memberFields(), textField(fieldName, maxName, &in.Name))
	if p := readObject(r, fields...); p != nil {
		return groupRequest{}, p
	}
	return in, nil
}

func (s groupService) runCreate(ctx context.Context, c semel.Call, in groupRequest) (chatdb.Group, bool, error) {
	n := chatdb.NewGroup{OwnerID: userIn(ctx).ID, Name: in.Name}
	g, replayed, err := once(ctx, s.app, c, func(ctx context.Context, tx chatdb.Tx) (chatdb.Group, error) {
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
		var err error
		if n.Members, err = in.users(ctx, tx); err != nil {
			return chatdb.Group{}, err
		}
		g, err := s.app.create(ctx, tx, n)
		if err != nil {
			return g, err
		}
		return g, s.welcomeAll(ctx, tx, g.ID, g.MemberIDs())
	})
	s.worker.Wake()
	return g, replayed, err
}

func renderGroup(w http.ResponseWriter, _ *http.Request, g chatdb.Group) {
	w.Header().Set("Location", "/v1/groups/"+g.ID)
	writeJSON(w, http.StatusCreated, g.For(g.OwnerID))
}

// refuseGroup is the response to a creation that has failed. It is built from the
// stored failure, so every caller receives the same.
func refuseGroup(f *semel.Failure) *semelhttp.Problem {
	var about rejection
	_ = json.Unmarshal(f.Details, &about) // an operator may have recorded another failure
	return problem(f.Code, about.Field, "%s Nothing was created.", f.Message)
}

// memberFields are the optional fields of the users.
func (in *userSelection) memberFields() []field {
	fields := []field{
		usersField(fieldMemberIDs, maxMembers, &in.MemberIDs), namesField(fieldMemberNames, maxMembers, &in.MemberNames),
	}
	for i := range fields {
		fields[i].optional = true
	}
	return fields
}

// users returns the IDs of all named users. A text that cannot be a name is the name of no
// user.
func (in *userSelection) users(ctx context.Context, q chatdb.Querier) ([]int64, error) {
	names := make([]chatdb.NewUser, len(in.MemberNames))
	for i, text := range in.MemberNames {
		name, _ := accounts.ParseName(text)
		names[i] = chatdb.NewUser{Name: text, NameKey: name.Key}
	}
	ids, err := chatdb.UserIDs(ctx, q, names)
	return append(ids, in.MemberIDs...), err
}

func (s groupService) list(r *http.Request) (any, error) {
	user := userIn(r.Context()).ID
	groups, err := chatdb.GroupsOf(r.Context(), s.domain, user)
	if err != nil {
		return nil, err
	}
	own := make([]chatdb.OwnGroup, len(groups))
	for i, g := range groups {
		own[i] = g.For(user)
	}
	return map[string]any{"groups": own}, nil
}

func (s groupService) get(r *http.Request) (any, error) {
	if err := s.checkMember(r); err != nil {
		return nil, err
	}
	g, err := chatdb.GroupByID(r.Context(), s.domain, r.PathValue("id"))
	return g.For(userIn(r.Context()).ID), err
}

func (s groupService) rename(r *http.Request) (any, error) {
	var name string
	if p := readObject(r, textField(fieldName, maxName, &name)); p != nil {
		return nil, p
	}
	var g chatdb.Group
	user := userIn(r.Context()).ID
	err := s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		g, err = s.writer.Rename(ctx, tx, r.PathValue("id"), user, name)
		return err
	})
	return g.For(user), err
}

// checkMember returns an error if the user does not belong to the group in the path.
func (s *app) checkMember(r *http.Request) error {
	return chatdb.CheckMember(r.Context(), s.domain, r.PathValue("id"), userIn(r.Context()).ID)
}
