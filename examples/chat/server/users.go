package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// newUser is the response to a registration. Only this response contains the
// token.
type newUser struct {
	chatdb.User

	Token string `json:"token"`
}

func (s *app) addUser(r *http.Request) (any, error) {
	var name string
	if p := readObject(r, textField(fieldName, maxName, &name)); p != nil {
		return nil, p
	}
	token, hash := newToken()
	added := newUser{Token: token}
	err := s.transact(r.Context(), func(ctx context.Context, tx chatdb.Tx) (err error) {
		added.User, err = chatdb.AddUserTx(ctx, tx, name, hash)
		return err
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

func (s *app) getUser(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id == chatdb.ServerID {
		return nil, problem(codeNotFound, "id", "There is no such user.")
	}
	u, err := chatdb.UserByID(r.Context(), s.domain, id)
	if errors.Is(err, chatdb.ErrNotFound) {
		return nil, problem(codeNotFound, "id", "There is no user %d.", id)
	}
	return u, err
}
