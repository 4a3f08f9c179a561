package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A caller that gives up closes its own session, and no other.
func TestWhoGivesUpTakesNoOtherSession(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{MaxSessions: 3})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetSessionsIdle(time.Hour)
	err := giveUpOn(t, pool, s, held(t, pool, s))
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

// TestTheDeadlineOfOneTakesNoOtherAlong: a caller with a short deadline closes no
// other session.
func TestTheDeadlineOfOneTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{MaxSessions: 3})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetSessionsIdle(time.Hour)
	busy := held(t, pool, s)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	var err error
	for err == nil {
		_, err = s.Swap(oneAmong{ctx}, []store.Change{busy})
	}
	if idle, open := s.Sessions(); idle < 2 || open < 2 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the time of one was over with %v: %d sessions are open and %d idle, want the two others", err, open, idle)
	}
}

// oneAmong is the context with which the engine passes on the deadline of a patient
// caller in a batch.
type oneAmong struct{ context.Context }

func (o oneAmong) Besides() context.Context { return o.Context }

// held returns a change of a record that another open transaction holds.
func held(t *testing.T, pool *pgxpool.Pool, s *postgres.Store) store.Change {
	t.Helper()
	change := create("held", store.InProgress, 1)
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := s.SwapTx(t.Context(), holder, []store.Change{change}); err != nil {
		t.Fatal(err)
	}
	return change
}

// giveUpOn asks for a change that is held, and gives up once it waits for the lock.
func giveUpOn(t *testing.T, pool *pgxpool.Pool, s *postgres.Store, change store.Change) (err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		const waits = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		for one[int](t, pool, waits) == 0 && t.Context().Err() == nil {
		}
		cancel()
	}()
	for err == nil { // it may be Busy before that
		_, err = s.Swap(ctx, []store.Change{change})
	}
	return err
}
