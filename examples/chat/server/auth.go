package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/examples/chat/chatdb"
)

// newToken draws a random bearer token. The server stores only its hash. The
// token has enough entropy that a plain SHA-256 cannot be reversed.
func newToken() (token string, hash []byte) {
	token = rand.Text() + rand.Text()
	return token, hashToken(token)
}

func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

type userKey struct{}

// userIn returns the user that authenticated put into ctx.
func userIn(ctx context.Context) chatdb.User {
	u, _ := ctx.Value(userKey{}).(chatdb.User)
	return u
}

// authenticated rejects requests without a valid token.
func (s *app) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, err := s.authenticatedUser(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, u)))
	})
}

func (s *app) authenticatedUser(r *http.Request) (chatdb.User, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return chatdb.User{}, problem(codeNoToken, "Authorization", "Send Authorization: Bearer with the token of a user.")
	}
	u, err := chatdb.UserByToken(r.Context(), s.domain, hashToken(token))
	if errors.Is(err, chatdb.ErrNotFound) {
		return chatdb.User{}, problem(codeNoToken, "Authorization", "No user has this token.")
	}
	return u, err
}

// scopeFunc returns the scope of a request's key: its user.
func scopeFunc(r *http.Request) (semel.Scope, error) {
	return scopeOf(userIn(r.Context())), nil
}
