package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Who gives up takes one session along, and no other.
func TestWhoGivesUpTakesNoOtherSession(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{MaxSessions: 3})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetSessionsIdle(time.Hour)
	held := create("held", store.InProgress, 1)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(t.Context()) }()
	if _, err := s.SwapTx(t.Context(), holder, []store.Change{held}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		const waits = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		for one[int](t, pool, waits) == 0 && t.Context().Err() == nil {
		}
		cancel()
	}()
	for err == nil { // it may be Busy before that
		_, err = s.Swap(ctx, []store.Change{held})
	}
	if idle, open := s.Sessions(); idle < 2 || open < 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("one gave up with %v: %d sessions are open and %d idle, want the two others", err, open, idle)
	}
}

// Once the pool is closed nothing can be changed any more, however much is asked.
func TestSessionsEndWithThePool(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{MaxSessions: 2})
	s.SetSessionsIdle(50 * time.Millisecond)
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustForce(t, s, create("before", store.InProgress, 1))
	pool.Close()
	asked := 0
	for err := error(nil); err == nil; asked++ {
		_, err = s.Swap(t.Context(), []store.Change{create(fmt.Sprint(asked), store.InProgress, 1)})
	}
	if _, err := s.Get(t.Context(), []store.ID{{1}}); err == nil {
		t.Errorf("Get works after %d changes, though the pool is closed", asked)
	}
	if _, open := s.Sessions(); open != 0 {
		t.Errorf("%d sessions are open after %d changes, though the pool is closed", open, asked)
	}
}
