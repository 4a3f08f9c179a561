package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/outbox"
)

// TestSessionsAreRevoked: each device has a session of its own, and a revoked one is
// refused from the next request on.
func TestSessionsAreRevoked(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		phone := s.signIn(t, "ann")
		bob := s.signIn(t, "bob")
		laptop := s.logIn(t, " ANN ", "laptop")
		list := func(u user) (devices []string, ids []string) {
			t.Helper()
			a := s.send(t, request{method: "GET", path: "/v1/sessions", as: u}).want(t, http.StatusOK, "")
			for _, v := range a.value(t)["sessions"].([]any) {
				session := v.(map[string]any)
				device := session["device"].(string)
				if session["current"].(bool) {
					device += ", current"
				}
				devices, ids = append(devices, device), append(ids, session["id"].(string))
			}
			return devices, ids
		}
		devices, ids := list(laptop)
		check.NoDiff(t, cmp.Diff([]string{"test", "laptop, current"}, devices), "sessions")
		end := func(u user, id string) answer {
			return s.send(t, request{method: "DELETE", path: "/v1/sessions/" + id, as: u})
		}
		end(bob, ids[0]).want(t, http.StatusNoContent, "") // another user's session is left alone
		list(phone)
		for range 2 {
			end(laptop, ids[0]).want(t, http.StatusNoContent, "")
		}
		s.send(t, request{method: "GET", path: "/v1/groups", as: phone}).want(t, http.StatusUnauthorized, "unauthenticated")
		s.send(t, creation(phone, "k", "crew")).want(t, http.StatusUnauthorized, "unauthenticated")
		end(laptop, "current").want(t, http.StatusNoContent, "")
		end(laptop, "current").want(t, http.StatusUnauthorized, "unauthenticated")
		devices, _ = list(bob)
		check.Equal(t, len(devices), 1, "bob's sessions")
	})
}

// TestRevocationsAreRepeated: the end of a session is an event of the outbox, which is published
// until the bus takes it. So a stream that only listens ends.
func TestRevocationsAreRepeated(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	publish := func(next outbox.Publisher) outbox.Publisher {
		return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			if m.Topic == "session" && !refused.Swap(true) {
				return errors.New("the bus is down")
			}
			return next.Publish(ctx, m)
		})
	}
	s := serveLocal(t, server.Hooks{Publish: publish}, newFiles(t, "inline").args(time.Minute)...)
	ann := s.signIn(t, "ann")
	listens := s.listen(t, ann, "")
	s.send(t, request{method: "DELETE", path: "/v1/sessions/current", as: ann}).want(t, http.StatusNoContent, "")
	listens.wantRevoked(t)
	if !refused.Load() {
		t.Error("the revocation was not an event of the outbox")
	}
}

// TestOldSessionsEnd: a session that is too old is refused.
func TestOldSessionsEnd(t *testing.T) {
	t.Parallel()
	f := newFiles(t, "inline")
	s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	ann := s.signIn(t, "ann")
	s.stop()
	s = serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-session-age", "1us")...)
	s.send(t, request{method: "GET", path: "/v1/groups", as: ann}).want(t, http.StatusUnauthorized, "unauthenticated")
	s.send(t, request{method: "GET", path: "/v1/events", as: ann}).want(t, http.StatusUnauthorized, "")
}

// TestSecretsAreNotKept searches for tokens, tickets and passwords in the database's files, the log, the
// outbox, and the events of the bus.
func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFiles(t, inline)
	create := func(name string) *os.File { return check.Must(os.Create(filepath.Join(t.TempDir(), name)))(t) }
	seen, log := create("seen"), create("log")
	records := server.Hooks{Publish: func(next outbox.Publisher) outbox.Publisher {
		return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			_, _ = fmt.Fprintf(seen, "%+v %s\n", m, m.Payload)
			return next.Publish(ctx, m)
		})
	}}
	s := serveLogging(t, log, records, f.args(time.Minute)...)
	ann := s.signIn(t, "ann")
	ticket := s.send(t, request{method: "POST", path: "/v1/tickets", as: ann}).want(t, http.StatusCreated, "").value(t)["ticket"].(string)
	listens := s.listen(t, user{}, "?ticket="+ticket)
	unused := s.send(t, request{method: "POST", path: "/v1/tickets", as: ann}).want(t, http.StatusCreated, "").value(t)["ticket"].(string)
	s.send(t, signUp("sign up bob", "ann")).want(t, http.StatusConflict, "name_taken")
	s.send(t, request{method: "POST", path: "/v1/sessions", body: `{"name":"ann","password":"wrong password"}`}).want(t, http.StatusUnauthorized, "wrong_credentials")
	s.send(t, creation(ann, "k", "crew")).want(t, http.StatusCreated, "")
	s.send(t, request{method: "GET", path: "/v1/groups?token=" + ann.Token, as: user{Token: "invalid token"}}).want(t, http.StatusUnauthorized, "unauthenticated")
	s.send(t, request{method: "DELETE", path: "/v1/sessions/current", as: ann}).want(t, http.StatusNoContent, "")
	listens.wantRevoked(t)
	s.stop()
	secretOf := func(ticket string) string {
		_, secret, _ := strings.Cut(ticket, ".")
		return secret
	}
	content := func(path string) string { return string(check.Must(os.ReadFile(path))(t)) }
	database, published := content(f.domain), content(seen.Name())
	for place, text := range map[string]string{"database": database, "log": content(log.Name()), "outbox": published} {
		for name, secret := range map[string]string{
			"token": ann.Token, "password": password, "wrong password": "wrong password", "ticket": secretOf(ticket), "unused ticket": secretOf(unused),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has the %s", place, name)
			}
		}
	}
	for place, text := range map[string]string{"database": database, "outbox": published} {
		if !strings.Contains(text, "ann") {
			t.Errorf("the %s does not have the user", place)
		}
	}
}
