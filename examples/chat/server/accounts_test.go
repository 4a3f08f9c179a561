package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/outbox"
)

// TestADoubleClickAddsOneUser sends a sign-up several times at once, with one key.
func TestADoubleClickAddsOneUser(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		bodies := s.atOnce(t, slices.Repeat([]request{signUp("k", "Dora")}, 4))
		if len(bodies[http.StatusCreated]) != 4 || len(slices.Compact(bodies[http.StatusCreated])) != 1 {
			t.Errorf("answers %v, want four times the same user", bodies)
		}
		dora := s.logIn(t, "dora", "phone")
		found := s.send(t, request{method: "GET", path: "/v1/users?name=DO", as: dora}).want(t, http.StatusOK, "")
		if want := fmt.Sprintf(`{"users":[{"id":%d,"name":"Dora"}]}`, dora.ID); strings.TrimSpace(found.Body) != want {
			t.Errorf("users %s, want %s", found.Body, want)
		}
		other := signUp("k", "Dora")
		other.body = strings.Replace(other.body, password, "another one", 1)
		// The fingerprint has no password, and the first one is not replaced.
		if a := s.send(t, other).want(t, http.StatusCreated, ""); !a.Replayed {
			t.Error("the sign-up with another password is no replay")
		}
		if again := s.logIn(t, "Dora", "laptop"); again.ID != dora.ID || again.Token == dora.Token {
			t.Errorf("signed in as %+v, before as %+v", again, dora)
		}
	})
}

// TestANameIsTakenOnce signs several users up at once, with one name in several forms.
func TestANameIsTakenOnce(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		var asked []request
		for i, name := range []string{"Zoë", "zoe\u0308", " ZOË ", "Ｚoë"} {
			asked = append(asked, signUp(fmt.Sprint("k", i), name))
		}
		bodies := s.atOnce(t, asked)
		if len(bodies[http.StatusCreated]) != 1 || len(bodies[http.StatusConflict]) != 3 {
			t.Fatalf("answers %v, want one user and three refusals", bodies)
		}
		for _, q := range asked { // each answer is kept
			a := s.send(t, q)
			if !slices.Contains(bodies[a.Status], a.Body) || !a.Replayed {
				t.Errorf("%s was answered with %d %s later", q.body, a.Status, a.Body)
			}
		}
	})
}

// atOnce sends requests at once, and returns the bodies by status.
func (c *client) atOnce(t *testing.T, asked []request) map[int][]string {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	bodies := make(map[int][]string)
	for _, q := range asked {
		all.Go(func() {
			a, err := c.settle(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			bodies[a.Status] = append(bodies[a.Status], a.Body)
		})
	}
	all.Wait()
	return bodies
}

// TestSignUpWithoutAnAnswer loses the reply to the commit of a sign-up, with the records in
// another database: the probe finds the user.
func TestSignUpWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f, c := newFiles(t, records), new(commits)
	s := serveLocal(t, c.hooks(), f.args(time.Minute)...)
	c.lost.Store(true)
	c.applied.Store(true)
	s.send(t, signUp("applied", "ann")).want(t, http.StatusCreated, "")
	c.applied.Store(false)
	s.send(t, signUp("undone", "bob")).want(t, http.StatusServiceUnavailable, "outcome_unknown")
	c.lost.Store(false)
	if a := s.send(t, signUp("applied", "ann")).want(t, http.StatusCreated, ""); !a.Replayed {
		t.Error("the user was added again")
	}
	s.send(t, signUp("new", "ann")).want(t, http.StatusConflict, "name_taken")
}

// TestSessionsAreRevoked: each device has a session of its own, and a revoked one is
// refused from the next request on.
func TestSessionsAreRevoked(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
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
		if !slices.Equal(devices, []string{"test", "laptop, current"}) {
			t.Fatalf("sessions %v", devices)
		}
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
		if devices, _ := list(bob); len(devices) != 1 {
			t.Errorf("bob's sessions: %v", devices)
		}
	})
}

// TestSignUpsAndLogInsAreLimited by address, and by name and address.
func TestSignUpsAndLogInsAreLimited(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, append(newFiles(t, inline).args(time.Minute), "-sign-ups", "2", "-log-ins", "3")...)
	s.send(t, signUp("a", "ann")).want(t, http.StatusCreated, "")
	s.send(t, signUp("b", "bob")).want(t, http.StatusCreated, "")
	if a := s.send(t, signUp("c", "cy")).want(t, http.StatusTooManyRequests, "too_many_requests"); a.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	wrong := request{method: "POST", path: "/v1/sessions", body: `{"name":"ann","password":"wrong horse"}`}
	for range 3 {
		s.send(t, wrong).want(t, http.StatusUnauthorized, "wrong_credentials")
	}
	wrong.body = `{"name":" ANN","password":"` + password + `"}`
	s.send(t, wrong).want(t, http.StatusTooManyRequests, "too_many_requests")
	s.logIn(t, "bob", "phone") // has a limit of his own
}

// TestSecretsAreNotKept searches for tokens, tickets and passwords in the database's files, the log, the
// outbox, and the events of the bus.
func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFiles(t, inline)
	seen, log := &spoken{}, &spoken{}
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
	for place, text := range map[string]string{"database": readFile(t, f.domain), "log": log.String(), "outbox": seen.String()} {
		for name, secret := range map[string]string{
			"token": ann.Token, "password": password, "wrong password": "wrong password", "ticket": secretOf(ticket), "unused ticket": secretOf(unused),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has the %s", place, name)
			}
		}
	}
	for place, text := range map[string]string{"database": readFile(t, f.domain), "outbox": seen.String()} {
		if !strings.Contains(text, "ann") {
			t.Errorf("the %s does not have the user", place)
		}
	}
}

// spoken is a text that several goroutines write.
type spoken struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns what was written.
func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
