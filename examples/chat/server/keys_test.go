package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

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
			check.Equal(t, len(s.groupsOf(t, u)), 1, "groups of %s", u.Name)
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
		if p := first.value(t); first.Replayed || p["field"] != "member_ids" || !strings.Contains(first.Body, "no user 2.") {
			t.Errorf("the refusal does not name the field and the user: %s", first.Body)
		}
		check.Equal(t, len(s.groupsOf(t, owner)), 0, "groups after a refused creation")
		check.Equal(t, s.signIn(t, "late").ID, next, "the next user")
		for i := range 3 {
			if i == 2 {
				s.stop()
				s = serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
			}
			s.send(t, asked).wantReplayOf(t, first)
		}
		asked.key = "new"
		s.send(t, asked).want(t, http.StatusCreated, "")
		check.Equal(t, creations(t, f.openDomain(t), owner, "k"), 0, "creations under the failed key")
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
			check.Equal(t, f.recordOf(t, f.engine(t), owner, key).State, state, "the record")
		}

		b.armed.Store(true)
		var held crowd
		held.send(t, 1, s.trying(creation(owner, "held", "crew")))
		<-b.arrived
		running := store.InProgress
		if f.mode == inline {
			running = store.Absent // only this process knows of the attempt
		}
		refused("held", running)
		close(b.open)
		held.wait()[0].want(t, http.StatusCreated, "")
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
		check.Equal(t, creations(t, f.openDomain(t), owner, "k"), 1, "creations")
	})
}
