package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A caller that waits for the right to write holds no connection.
func TestWaitersHoldNoConnections(t *testing.T) {
	const waiters = 200
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	s.SetPatience(time.Minute)
	before := db.Stats().OpenConnections
	var waiting atomic.Int32
	var all sync.WaitGroup
	last := create("leader", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			for i := range waiters {
				all.Go(func() {
					waiting.Add(1)
					c := create(fmt.Sprint(i), store.InProgress, 1)
					answers, err := s.Swap(ctx, []store.Change{c})
					if err != nil || !answers[0].Applied(c) {
						t.Errorf("Swap = %+v, %v, want applied", answers, err)
					}
				})
			}
			for waiting.Load() < waiters {
				if _, err := s.Get(ctx, []store.ID{last.To.ID}); err != nil { // readers continue
					return nil, err
				}
			}
			return &last, effect(ctx, tx, "leader")
		})
	check.Require(t, err, "Atomic = %v,", verdict)
	all.Wait()
	if n := db.Stats().OpenConnections; n > before+2 {
		t.Errorf("%d waiters have opened %d connections, want 2 at most", waiters, n-before)
	}
}

// lockDatabase takes the write lock on another connection, and returns the function
// that releases it.
func lockDatabase(t *testing.T, db *sql.DB) (release func()) {
	t.Helper()
	other := check.Must(db.Conn(t.Context()))(t)
	mustExec(t, other, `BEGIN IMMEDIATE`)
	return func() {
		mustExec(t, other, `ROLLBACK`)
		other.Close()
	}
}

// A lock of another connection makes everything Busy, and nothing fails.
func TestLockedByAnotherProcess(t *testing.T) {
	db := plain(t)
	s := sqlite.New(db, sqlite.Options{})
	before := create("before", store.InProgress, 1)
	mustApply(t, s, before)
	over := create("over", store.Succeeded, 1)
	over.To.Expire = -1
	mustApply(t, s, over)
	release := lockDatabase(t, db)
	s.SetPatience(20 * time.Millisecond)

	large := create("large", store.Succeeded, 1)
	large.To.Outcome = make([]byte, 1<<20+1)
	answers, err := s.Swap(t.Context(), []store.Change{before, large, create("new", store.InProgress, 1)})
	if err != nil || !answers[0].Busy || !answers[2].Busy || answers[1].Busy || answers[1].Err == nil {
		t.Errorf("Swap = %+v, %v, want Busy, too large, Busy", answers, err)
	}
	if answer, err := s.SwapNoted(t.Context(), before, store.Note{}); err != nil || !answer.Busy {
		t.Errorf("SwapNoted = %+v, %v, want Busy", answer, err)
	}
	check.ResultIs(s.Purge(t.Context(), 1))(t, 0, sqlite.ErrBusy, "Purge (want ErrBusy)")
	atomicOfALockedDatabase(t, s, before)
	if got := current(t, s, before); got != before.To.Token {
		t.Errorf("Get = %+v, want the current record", got)
	}
	release()
	s.SetPatience(time.Minute)
	mustApply(t, s, move(before, store.Succeeded))
}

// With the settings of Open SQLite waits for the lock.
func TestLockedByAnotherProcessAfterOpen(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	c := create("key", store.InProgress, 1)
	release := lockDatabase(t, db)
	if answers, err := s.Swap(t.Context(), []store.Change{c}); err != nil || !answers[0].Busy {
		t.Errorf("Swap = %+v, %v, want Busy", answers, err)
	}
	release()
	mustApply(t, s, c)
}

func atomicOfALockedDatabase(t *testing.T, s *sqlite.Store, c store.Change) {
	t.Helper()
	calls := 0
	run := func(last *store.Change, err error) func(context.Context, *sql.Tx, store.SwapResult) (*store.Change, error) {
		return func(_ context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error) {
			calls++
			if tx != nil || !current.Busy {
				t.Errorf("run gets %+v, want Busy and no transaction", current)
			}
			return last, err
		}
	}
	check.ResultIs(s.Atomic(t.Context(), c.To.ID, true, run(nil, errHandler)))(t, store.NotCommitted, errHandler, "Atomic (want NotCommitted and the run's error)")
	for _, fail := range []error{nil, errHandler} {
		check.ResultIs(s.Atomic(t.Context(), c.To.ID, true, run(&c, fail)))(t, store.NotCommitted, sqlite.ErrBusy, "Atomic that ignores Busy (want NotCommitted, ErrBusy)")
	}
	check.ResultIs(s.Atomic(t.Context(), c.To.ID, false, run(nil, nil)))(t, store.NotCommitted, sqlite.ErrBusy, "Atomic without hold (want NotCommitted, ErrBusy)")
	check.Equal(t, calls, 3, "run was called")
}

// With deferred transactions, the default of drivers, writers of two stores wait
// for each other and none loses its snapshot.
func TestDeferredTransactions(t *testing.T) {
	db := plain(t)
	mustExec(t, db, `PRAGMA journal_mode = WAL`)
	var all sync.WaitGroup
	for w := range 4 {
		s := sqlite.New(db, sqlite.Options{}) // with a writer queue of its own
		s.SetPatience(time.Minute)
		all.Go(func() {
			for i := range 25 {
				c := create(fmt.Sprint(w, " ", i), store.Succeeded, 1)
				verdict, err := s.Atomic(t.Context(), c.To.ID, true,
					func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
						var n int
						err := tx.QueryRowContext(ctx, `SELECT count(*) FROM effects`).Scan(&n)
						return &c, errors.Join(err, effect(ctx, tx, "key"))
					})
				check.Equal(t, verdict, store.Committed, "Atomic: %v", err)
			}
		})
	}
	all.Wait()
	check.Equal(t, effects(t, db, "key"), 100, "effects")
}

// A pool of one connection is enough for calls that are not nested.
func TestPoolOfOne(t *testing.T) {
	db := open(t)
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := sqlite.New(db, sqlite.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(ctx, last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return &last, errors.Join(effect(ctx, tx, "key"), tx.Commit())
		})
	check.ResultIs(verdict, err)(t, store.Committed, sqlite.ErrEnded, "Atomic (want Committed, ErrEnded)")
	mustApply(t, s, last)
	if _, err := s.Scan(ctx, store.Query{}); err != nil {
		t.Error(err)
	}
}

// A caller that gives up while others hold the write lock gets its context's error,
// and has written nothing.
func TestContextEndsWhileWaiting(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	s.SetPatience(time.Minute)
	last := create("leader", store.Succeeded, 1)
	given := create("given up", store.Succeeded, 1)
	check.Must(s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, _ *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			if answers, err := s.Swap(ctx, []store.Change{given}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Swap = %+v, %v, want the context's error", answers, err)
			}
			verdict, err := finishCtx(ctx, s, "given up", &given)
			check.ResultIs(verdict, err)(t, store.NotCommitted, context.DeadlineExceeded, "Atomic (want NotCommitted and the context's error)")
			return &last, nil
		}))(t)
	if current(t, s, given) != (store.Token{}) || effects(t, db, "given up") != 0 {
		t.Error("what was given up has happened")
	}
}

// Whenever the context ends, an answer without an error means that the change is
// applied, and an error that it is not. The time after which it ends follows the speed of
// the machine: it is longer after an interrupted call, and shorter after a completed one.
func TestContextEndsAnywhere(t *testing.T) {
	const rounds = 150
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	done, broken, limit := 0, 0, time.Millisecond
	count := func(err error) {
		if err == nil {
			done++
			limit -= limit / 4
		} else {
			broken++
			limit += limit / 3
		}
	}
	for i := range rounds {
		swapped, acted := create(fmt.Sprint("swap ", i), store.Succeeded, 1), create(fmt.Sprint("act ", i), store.Succeeded, 1)
		swapped.To.Outcome = make([]byte, 100_000) // a longer statement, to be interrupted in

		err := endingWithin(t, limit, func(ctx context.Context) error {
			_, err := s.Swap(ctx, []store.Change{swapped})
			return err
		})
		if got := current(t, s, swapped) == swapped.To.Token; got != (err == nil) {
			t.Fatalf("round %d: Swap returns %v, and its record is %v", i, err, got)
		}
		count(err)

		key := fmt.Sprint(i)
		var verdict store.Verdict
		err = endingWithin(t, limit, func(ctx context.Context) (err error) {
			verdict, err = finishCtx(ctx, s, key, &acted)
			return err
		})
		got, n := current(t, s, acted) == acted.To.Token, effects(t, db, key)
		if got != (err == nil) || got != (verdict == store.Committed) || got != (n == 1) {
			t.Fatalf("round %d: Atomic returns %v, %v, its record is %v, with %d effects", i, verdict, err, got, n)
		}
		count(err)
	}
	if done == 0 || broken == 0 {
		t.Errorf("of %d calls %d were completed and %d interrupted: the test is vacuous", 2*rounds, done, broken)
	}
}

// endingWithin calls f with a context that ends at some time within limit.
func endingWithin(t *testing.T, limit time.Duration, f func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rand.N(limit))
	defer cancel()
	return f(ctx)
}

func finishCtx(ctx context.Context, s *sqlite.Store, key string, last *store.Change) (store.Verdict, error) {
	return s.Atomic(ctx, last.To.ID, true, func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
		if err := effect(ctx, tx, key); err != nil {
			return nil, err
		}
		return last, nil
	})
}
