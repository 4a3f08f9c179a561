package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
)

// TestSignUpsAtOnceAddOneUser sends a sign-up several times at once, with one key; and then several sign-ups
// with one name in several forms.
func TestSignUpsAtOnceAddOneUser(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		bodies := s.atOnce(t, slices.Repeat([]request{signUp("k", "Dora")}, 4))
		if len(bodies[http.StatusCreated]) != 4 || len(slices.Compact(bodies[http.StatusCreated])) != 1 {
			t.Errorf("answers %v, want four times the same user", bodies)
		}
		dora := s.logIn(t, "dora", "phone")
		found := s.send(t, request{method: "GET", path: "/v1/users?name=DO", as: dora}).want(t, http.StatusOK, "")
		check.Equal(t, strings.TrimSpace(found.Body), fmt.Sprintf(`{"users":[{"id":%d,"name":"Dora"}]}`, dora.ID), "users")
		found = s.send(t, request{method: "GET", path: fmt.Sprint("/v1/users/", dora.ID), as: dora}).want(t, http.StatusOK, "")
		check.Equal(t, strings.TrimSpace(found.Body), fmt.Sprintf(`{"id":%d,"name":"Dora"}`, dora.ID), "the user")
		if len(dora.Token) < 32 {
			t.Errorf("the token %q is short", dora.Token)
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

		var asked []request
		for i, name := range []string{"Zoë", "zoe\u0308", " ZOË ", "Ｚoë"} {
			asked = append(asked, signUp(fmt.Sprint("k", i), name))
		}
		bodies = s.atOnce(t, asked)
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
	var all crowd
	for _, q := range asked {
		all.send(t, 1, c.settling(q))
	}
	bodies := make(map[int][]string)
	for _, a := range all.wait() {
		bodies[a.Status] = append(bodies[a.Status], a.Body)
	}
	return bodies
}

// TestSignUpsAndLogInsAreLimited by address, and by name and address.
func TestSignUpsAndLogInsAreLimited(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, append(newFiles(t, inline).args(time.Minute), "-sign-ups", "2", "-log-ins", "3", "-trusted-proxies", "127.0.0.0/8")...)
	s.send(t, signUp("a", "ann")).want(t, http.StatusCreated, "")
	s.send(t, signUp("b", "bob")).want(t, http.StatusCreated, "")
	third := signUp("c", "cy")
	if a := s.send(t, third).want(t, http.StatusTooManyRequests, "too_many_requests"); a.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	third.header = map[string]string{"X-Forwarded-For": "198.51.100.1"} // the refusal was not stored under the key
	if a := s.send(t, third).want(t, http.StatusCreated, ""); a.Replayed {
		t.Error("a sign-up that was refused is answered as a replay")
	}
	if a := s.send(t, third).want(t, http.StatusCreated, ""); !a.Replayed {
		t.Error("a repeated sign-up is no replay")
	}
	s.send(t, third).want(t, http.StatusTooManyRequests, "too_many_requests") // each one costs a hash of a password
	wrong := request{method: "POST", path: "/v1/sessions", body: `{"name":"ann","password":"wrong horse"}`}
	for range 3 {
		s.send(t, wrong).want(t, http.StatusUnauthorized, "wrong_credentials")
	}
	wrong.body = `{"name":" ANN","password":"` + password + `"}`
	s.send(t, wrong).want(t, http.StatusTooManyRequests, "too_many_requests")
	s.logIn(t, "bob", "phone") // has a limit of his own
}
