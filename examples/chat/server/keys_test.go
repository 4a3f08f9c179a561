package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
)

// inEachMode runs a test against a server in each mode, on each database.
func inEachMode(t *testing.T, test func(t *testing.T, f files)) {
	t.Helper()
	t.Parallel()
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, newFiles(t, mode))
		})
		t.Run("postgres/"+mode, func(t *testing.T) {
			t.Parallel()
			test(t, newPostgres(t, mode))
		})
		t.Run("mariadb/"+mode, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && mode != inline {
				t.Skip("make test-full runs it")
			}
			test(t, newMariaDB(t, mode))
		})
	}
}

func TestKeysBelongToTheirUser(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		ann, bob := s.signIn(t, "ann"), s.signIn(t, "bob")
		one := s.send(t, creation(ann, "k", "crew")).want(t, http.StatusCreated, "")
		two := s.send(t, creation(bob, "k", "crew")).want(t, http.StatusCreated, "")
		if one.Replayed || two.Replayed {
			t.Error("a user was answered from another one's record")
		}
		a, b := one.value(t), two.value(t)
		for _, field := range []string{"id", "conversation_id", "owner_id"} {
			if a[field] == b[field] {
				t.Errorf("both groups have %s %v", field, a[field])
			}
		}
		for _, u := range []user{ann, bob} {
			if n := len(s.groupsOf(t, u)); n != 1 {
				t.Errorf("%s has %d groups, want 1", u.Name, n)
			}
		}
	})
}

// TestFailedStaysFailed, also after a restart of the server.
func TestFailedStaysFailed(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		next := owner.ID + 1 // the ID of a user that does not exist yet
		asked := creation(owner, "k", "crew", next)
		first := s.send(t, asked).want(t, http.StatusUnprocessableEntity, "unknown_member")
		if p := first.value(t); p["field"] != "member_ids" || !strings.Contains(first.Body, "no user 2.") {
			t.Errorf("the refusal does not name the field and the user: %s", first.Body)
		}
		if n := len(s.groupsOf(t, owner)); n != 0 {
			t.Errorf("%d groups after a refused creation, want 0", n)
		}
		if u := s.signIn(t, "late"); u.ID != next {
			t.Fatalf("the next user is %d, want %d", u.ID, next)
		}
		for i := range 3 {
			if i == 2 {
				s.stop()
				s = serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
			}
			again := s.send(t, asked)
			if again.Status != first.Status || again.Body != first.Body || first.Replayed || !again.Replayed {
				t.Errorf("refused with %d %q, then with %d %q (replayed %v)",
					first.Status, first.Body, again.Status, again.Body, again.Replayed)
			}
		}
		asked.key = "new"
		s.send(t, asked).want(t, http.StatusCreated, "")
		if n := creations(t, f.openDomain(t), owner, "k"); n != 0 {
			t.Errorf("%d creations under the failed key, want 0", n)
		}
	})
}

// TestAnotherBodyIsAMismatch sends another body with a used key, in each state that a
// record can have.
func TestAnotherBodyIsAMismatch(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		b, broken := newBarrier(), new(atomic.Bool)
		to := b.at(f.mode)
		to.Create = failing(to.Create, broken)
		s := serveLocal(t, to, f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		refused := func(key string, state store.State) {
			t.Helper()
			s.send(t, creation(owner, key, "something else")).want(t, http.StatusUnprocessableEntity, "key_reused")
			if state == store.Absent {
				return
			}
			if r := f.recordOf(t, f.engine(t), owner, key); r.State != state {
				t.Errorf("the record is %v, want %v", r.State, state)
			}
		}

		b.armed.Store(true)
		done := make(chan answer, 1)
		go func() {
			a, _ := s.try(t.Context(), creation(owner, "held", "crew"))
			done <- a
		}()
		b.await(t)
		running := store.InProgress
		if f.mode == inline {
			running = store.Absent // only this process knows of the attempt
		}
		refused("held", running)
		close(b.open)
		(<-done).want(t, http.StatusCreated, "")
		refused("held", store.Succeeded)

		s.send(t, creation(owner, "failed", "crew", 99)).want(t, http.StatusUnprocessableEntity, "unknown_member")
		refused("failed", store.Failed)

		if f.mode != inline { // an inline attempt is not visible
			broken.Store(true)
			s.send(t, creation(owner, "released", "crew")).want(t, http.StatusServiceUnavailable, "unavailable")
			broken.Store(false)
			refused("released", store.Pending)
		}
	})
}

var errDisk = errors.New("disk full")

// failing makes creations fail with a database error while broken is set.
func failing(outer func(server.CreateFunc) server.CreateFunc, broken *atomic.Bool) func(server.CreateFunc) server.CreateFunc {
	return func(next server.CreateFunc) server.CreateFunc {
		if outer != nil {
			next = outer(next)
		}
		return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
			g, err := next(ctx, tx, n)
			if broken.Load() {
				return g, errDisk
			}
			return g, err
		}
	}
}

// TestTemporaryFailureIsNotStored makes the database fail once; a retry with the
// same key then succeeds.
func TestTemporaryFailureIsNotStored(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		broken := new(atomic.Bool)
		s := serveLocal(t, server.Hooks{Create: failing(nil, broken)}, f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		asked := creation(owner, "k", "crew")
		broken.Store(true)
		p := s.send(t, asked).want(t, http.StatusServiceUnavailable, "unavailable")
		if strings.Contains(p.Body, errDisk.Error()) || p.Header.Get("Retry-After") == "" {
			t.Errorf("the client was told %s, Retry-After %q", p.Body, p.Header.Get("Retry-After"))
		}
		broken.Store(false)
		a := s.send(t, asked).want(t, http.StatusCreated, "")
		if a.Replayed {
			t.Error("the first success is called a replay")
		}
		if n := creations(t, f.openDomain(t), owner, "k"); n != 1 {
			t.Errorf("%d creations, want 1", n)
		}
	})
}

// TestMessagesAreSentOnce repeats a message: its number stays, and the numbers have
// no gaps.
func TestMessagesAreSentOnce(t *testing.T) {
	inEachMode(t, func(t *testing.T, f files) {
		s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
		owner := s.signIn(t, "owner")
		group := s.send(t, creation(owner, "g", "crew")).value(t)["id"].(string)
		s.wantWelcomes(t, f.openDomain(t), owner, group, 1)
		path := "/v1/groups/" + group + "/messages"
		send := func(key, text string) answer {
			return s.send(t, request{method: "POST", path: path, as: owner, key: key, body: `{"text":"` + text + `"}`})
		}
		var seqs []float64
		for _, key := range []string{"a", "b", "a", "c", "b"} {
			seqs = append(seqs, send(key, "hello").want(t, http.StatusCreated, "").value(t)["seq"].(float64))
		}
		if want := []float64{2, 3, 2, 4, 3}; !slices.Equal(seqs, want) {
			t.Errorf("seqs %v, want %v", seqs, want)
		}
		send("a", "other").want(t, http.StatusUnprocessableEntity, "key_reused")
		list := s.send(t, request{method: "GET", path: path + "?after=1&limit=1", as: owner}).value(t)["messages"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["seq"] != 2.0 {
			t.Errorf("after 1, limit 1: %v", list)
		}
	})
}
