package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/semelhttp"
)

// userService has the endpoints of users, sessions and tickets.
type userService struct {
	*app

	hasher  *accounts.Hasher
	signUps *accounts.Limiter // by address
	// The limits of log-ins: of a name from an address, and of all names from an address.
	logIns, logInsFrom *accounts.Limiter
}

// signUp is the endpoint that adds a user once per key. Its caller has no scope yet, so all
// callers share their keys.
func (s userService) signUp() (http.Handler, error) {
	o := s.keyed()
	o.ScopeFunc = func(*http.Request) (semel.Scope, error) { return semel.Shared(), nil }
	return semelhttp.Handle(semelhttp.Endpoint[userRequest, chatdb.User]{
		Operation: s.operations.signUp,
		Decode:    s.decodeSignUp,
		Run:       s.runSignUp,
		Render: func(w http.ResponseWriter, _ *http.Request, u chatdb.User) {
			w.Header().Set("Location", "/v1/users/"+strconv.FormatInt(u.ID, 10))
			writeJSON(w, http.StatusCreated, u)
		},
		Refuse: refuseSignUp,
	}, o)
}

func (s userService) decodeSignUp(r *http.Request) (userRequest, error) {
	if p := s.limit(s.signUps, s.config.addressOf(r)); p != nil {
		return userRequest{}, p
	}
	var text string
	var in userRequest
	if p := readObject(r, textField(fieldName, accounts.MaxName, &text), passwordField(&in.Password)); p != nil {
		return in, p
	}
	name, err := accounts.NewName(text)
	switch {
	case errors.Is(err, accounts.ErrNameReserved):
		return in, problem(codeNameTaken, fieldName, "The name is reserved.")
	case errors.Is(err, accounts.ErrNameTooLong):
		return in, problem(codeInvalid, fieldName, "The name is longer than %d characters.", accounts.MaxName)
	case errors.Is(err, accounts.ErrNameMixed):
		return in, problem(codeInvalid, fieldName, "The name mixes Latin, Greek or Cyrillic letters.")
	case err != nil:
		return in, problem(codeInvalid, fieldName, "The name has characters that cannot be seen, or that are not text.")
	}
	in.Name, in.NameKey = name.Shown, name.Key
	return in, nil
}

func (s userService) runSignUp(ctx context.Context, c semel.Call, in userRequest) (chatdb.User, bool, error) {
	// The hash takes long, so it is computed before a transaction is open.
	hash, err := s.hasher.Hash(ctx, in.Password)
	if err != nil {
		return chatdb.User{}, false, problemOf(err)
	}
	n := chatdb.NewUser{Name: in.Name, NameKey: in.NameKey, PasswordHash: hash}
	return once(ctx, s.app, c, func(ctx context.Context, tx chatdb.Tx) (chatdb.User, error) {
		if s.config.mode == modeApart {
			n.Key = c.Key()
			if u, err := chatdb.UserBySignUp(ctx, tx, n.Key); !errors.Is(err, chatdb.ErrNotFound) {
				return u, err
			}
		}
		return chatdb.AddUserTx(ctx, tx, n)
	})
}

// refuseSignUp is the response to a sign-up that has failed, for every caller.
func refuseSignUp(f *semel.Failure) *semelhttp.Problem {
	return problem(f.Code, fieldName, "%s", f.Message)
}

// passwordField is the password of a new user.
func passwordField(into *string) field {
	return field{name: fieldPassword, set: func(value json.RawMessage) string {
		if value[0] != '"' || json.Unmarshal(value, into) != nil {
			return "must be a text"
		}
		if accounts.CheckPassword(*into) != nil {
			return "must have " + strconv.Itoa(accounts.MinPassword) + " to " + strconv.Itoa(accounts.MaxPassword) +
				" characters, and no control characters"
		}
		return ""
	}}
}

func (s userService) get(r *http.Request) (any, error) {
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

// find lists users by the beginning of their names.
func (s userService) find(r *http.Request) (any, error) {
	limit, err := wholeNumber(r, "limit", defaultFound, 1, maxFound)
	if err != nil {
		return nil, err
	}
	name, err := accounts.ParseName(r.URL.Query().Get(fieldName))
	if err != nil {
		return nil, problem(codeInvalid, fieldName, "%q must be the beginning of a name.", fieldName)
	}
	users, err := chatdb.UsersByPrefix(r.Context(), s.domain, name.Key, int(limit))
	if err != nil {
		return nil, err
	}
	return map[string]any{"users": users}, nil
}

// defaultFound and maxFound are numbers of users in one response.
const (
	defaultFound = 10
	maxFound     = 50
)
