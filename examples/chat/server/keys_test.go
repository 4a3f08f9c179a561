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
// record can have. A temporary failure of the database is not stored: a retry succeeds.
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

		broken.Store(true)
		released := creation(owner, "released", "crew")
		p := s.send(t, released).want(t, http.StatusServiceUnavailable, "unavailable")
		if strings.Contains(p.Body, errDisk.Error()) || p.Header.Get("Retry-After") == "" {
			t.Errorf("the client was told %s, Retry-After %q", p.Body, p.Header.Get("Retry-After"))
		}
		broken.Store(false)
		if f.mode != inline { // an inline attempt is not visible
			refused("released", store.Pending)
		}
		if s.send(t, released).want(t, http.StatusCreated, "").Replayed {
			t.Error("the first success is called a replay")
		}
		check.Equal(t, creations(t, f.openDomain(t), owner, released.key), 1, "creations after a temporary failure")
		refused("released", store.Succeeded)
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
