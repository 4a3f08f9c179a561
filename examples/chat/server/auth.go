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

// newToken draws a random bearer token. The server stores only its digest. The
// token has enough entropy that a plain SHA-256 cannot be reversed.
func newToken() (token string, digest []byte) {
	token = rand.Text() + rand.Text()
	return token, digestOf(token)
}

func digestOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

type sessionKey struct{}

// sessionIn returns the session that authenticated put into ctx.
func sessionIn(ctx context.Context) chatdb.Session {
	s, _ := ctx.Value(sessionKey{}).(chatdb.Session)
	return s
}

// userIn returns the user of the session.
func userIn(ctx context.Context) chatdb.User { return sessionIn(ctx).User }

// authenticated rejects requests without a valid token.
func (s *app) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := s.sessionOf(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, session)))
	})
}

func (s *app) sessionOf(r *http.Request) (chatdb.Session, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return chatdb.Session{}, problem(codeNoToken, "Authorization", "Send Authorization: Bearer with the token of a session.")
	}
	return s.sessionByToken(r.Context(), token)
}

// sessionByToken returns the session of a token. A token of no session, or of a revoked
// one, is refused.
func (s *app) sessionByToken(ctx context.Context, token string) (chatdb.Session, error) {
	session, err := chatdb.SessionByToken(ctx, s.domain, digestOf(token), s.config.oldest())
	if errors.Is(err, chatdb.ErrNotFound) {
		return session, problem(codeNoToken, "Authorization", "No session has this token.")
	}
	return session, err
}

// scopeFunc returns the scope of a request's key: its user.
func scopeFunc(r *http.Request) (semel.Scope, error) {
	return scopeOf(userIn(r.Context())), nil
}
