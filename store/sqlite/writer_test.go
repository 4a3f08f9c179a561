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

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A caller that waits for the right to write holds no connection.
func TestWaitersHoldNoConnections(t *testing.T) {
	const waiters = 200
	db := open(t)
	s := sqlite.New(db)
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
						t.Errorf("Swap = %+v, %v, want in force", answers, err)
					}
				})
			}
			for waiting.Load() < waiters {
				if _, err := s.Get(ctx, []store.ID{last.To.ID}); err != nil { // readers go on
					return nil, err
				}
			}
			return &last, effect(ctx, tx, "leader")
		})
	if err != nil {
		t.Fatalf("Atomic = %v, %v", verdict, err)
	}
	all.Wait()
	if n := db.Stats().OpenConnections; n > before+2 {
		t.Errorf("%d waiters have opened %d connections, want 2 at most", waiters, n-before)
	}
}

// lockOut lets another connection take the write lock, and returns the function
// that releases it.
func lockOut(t *testing.T, db *sql.DB) (release func()) {
	t.Helper()
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, other, `BEGIN IMMEDIATE`)
	return func() {
		mustExec(t, other, `ROLLBACK`)
		other.Close()
	}
}

// A lock of another connection makes everything Busy, and nothing fails.
func TestLockedBySomebodyElse(t *testing.T) {
	db := plain(t)
	s := sqlite.New(db)
	stood := create("stood", store.InProgress, 1)
	mustForce(t, s, stood)
	over := create("over", store.Succeeded, 1)
	over.To.Expire = -1
	mustForce(t, s, over)
	release := lockOut(t, db)
	s.SetPatience(20 * time.Millisecond)

	large := create("large", store.Succeeded, 1)
	large.To.Outcome = make([]byte, 1<<20+1)
	answers, err := s.Swap(t.Context(), []store.Change{stood, large, create("new", store.InProgress, 1)})
	if err != nil || !answers[0].Busy || !answers[2].Busy || answers[1].Busy || answers[1].Err == nil {
		t.Errorf("Swap = %+v, %v, want Busy, too large, Busy", answers, err)
	}
	if answer, err := s.SwapNoted(t.Context(), stood, store.Note{}); err != nil || !answer.Busy {
		t.Errorf("SwapNoted = %+v, %v, want Busy", answer, err)
	}
	if n, err := s.Purge(t.Context(), 1); n != 0 || !errors.Is(err, sqlite.ErrBusy) {
		t.Errorf("Purge = %d, %v, want ErrBusy", n, err)
	}
	atomicOfALockedDatabase(t, s, stood)
	if got := stands(t, s, stood); got != stood.To.Token {
		t.Errorf("Get = %+v, want what stands", got)
	}
	release()
	s.SetPatience(time.Minute)
	mustForce(t, s, move(stood, store.Succeeded))
}

// With the settings of Open the waiting for a lock is SQLite's.
func TestLockedBySomebodyElseAfterOpen(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	c := create("key", store.InProgress, 1)
	release := lockOut(t, db)
	if answers, err := s.Swap(t.Context(), []store.Change{c}); err != nil || !answers[0].Busy {
		t.Errorf("Swap = %+v, %v, want Busy", answers, err)
	}
	release()
	mustForce(t, s, c)
}

func atomicOfALockedDatabase(t *testing.T, s *sqlite.Store, c store.Change) {
	t.Helper()
	calls := 0
	run := func(last *store.Change, err error) func(context.Context, *sql.Tx, store.SwapResult) (*store.Change, error) {
		return func(_ context.Context, tx *sql.Tx, stands store.SwapResult) (*store.Change, error) {
			calls++
			if tx != nil || !stands.Busy {
				t.Errorf("run is told %+v, want Busy and no transaction", stands)
			}
			return last, err
		}
	}
	if verdict, err := s.Atomic(t.Context(), c.To.ID, true, run(nil, errHandler)); verdict != store.NotCommitted || !errors.Is(err, errHandler) {
		t.Errorf("Atomic = %v, %v, want NotCommitted and the run's error", verdict, err)
	}
	for _, fail := range []error{nil, errHandler} {
		if verdict, err := s.Atomic(t.Context(), c.To.ID, true, run(&c, fail)); verdict != store.NotCommitted || !errors.Is(err, sqlite.ErrBusy) {
			t.Errorf("Atomic that ignores Busy = %v, %v, want NotCommitted, ErrBusy", verdict, err)
		}
	}
	if verdict, err := s.Atomic(t.Context(), c.To.ID, false, run(nil, nil)); verdict != store.NotCommitted || !errors.Is(err, sqlite.ErrBusy) {
		t.Errorf("Atomic without hold = %v, %v, want NotCommitted, ErrBusy", verdict, err)
	}
	if calls != 3 {
		t.Errorf("run was called %d times, want 3", calls)
	}
}

// With deferred transactions, as a driver begins them when nothing else is said,
// writers of two stores wait for each other and none loses its snapshot.
func TestDeferredTransactions(t *testing.T) {
	db := plain(t)
	mustExec(t, db, `PRAGMA journal_mode = WAL`)
	var all sync.WaitGroup
	for w := range 4 {
		s := sqlite.New(db) // with a queue of its own
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
				if verdict != store.Committed {
					t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
				}
			}
		})
	}
	all.Wait()
	if n := effects(t, db, "key"); n != 100 {
		t.Errorf("%d effects, want 100", n)
	}
}

// A pool of one connection is enough for calls that are not nested.
func TestPoolOfOne(t *testing.T) {
	db := open(t)
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := sqlite.New(db)
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(ctx, last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return &last, errors.Join(effect(ctx, tx, "key"), tx.Commit())
		})
	if verdict != store.Committed || !errors.Is(err, sqlite.ErrEnded) {
		t.Errorf("Atomic = %v, %v, want Committed, ErrEnded", verdict, err)
	}
	mustForce(t, s, last)
	if _, err := s.Scan(ctx, store.Query{}); err != nil {
		t.Error(err)
	}
}

// A caller that gives up while others have the right to write gets its context's
// error, and has written nothing.
func TestContextEndsWhileWaiting(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	s.SetPatience(time.Minute)
	last := create("leader", store.Succeeded, 1)
	given := create("given up", store.Succeeded, 1)
	_, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, _ *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			if answers, err := s.Swap(ctx, []store.Change{given}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Swap = %+v, %v, want the context's error", answers, err)
			}
			verdict, err := finishCtx(ctx, s, "given up", &given)
			if verdict != store.NotCommitted || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Atomic = %v, %v, want NotCommitted and the context's error", verdict, err)
			}
			return &last, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if stands(t, s, given) != (store.Token{}) || effects(t, db, "given up") != 0 {
		t.Error("what was given up has happened")
	}
}

// Whenever the context ends, an answer without an error means that the change
// stands, and an error that it does not.
func TestContextEndsAnywhere(t *testing.T) {
	const rounds = 400
	db := open(t)
	s := sqlite.New(db)
	done, broken := 0, 0
	for i := range rounds {
		swapped, acted := create(fmt.Sprint("swap ", i), store.Succeeded, 1), create(fmt.Sprint("act ", i), store.Succeeded, 1)
		swapped.To.Outcome = make([]byte, 100_000) // a longer way to be broken off on

		err := endingSoon(t, func(ctx context.Context) error {
			_, err := s.Swap(ctx, []store.Change{swapped})
			return err
		})
		if got := stands(t, s, swapped) == swapped.To.Token; got != (err == nil) {
			t.Fatalf("round %d: Swap says %v, and it stands: %v", i, err, got)
		}
		count(err, &done, &broken)

		key := fmt.Sprint(i)
		var verdict store.Verdict
		err = endingSoon(t, func(ctx context.Context) (err error) {
			verdict, err = finishCtx(ctx, s, key, &acted)
			return err
		})
		got, n := stands(t, s, acted) == acted.To.Token, effects(t, db, key)
		if got != (err == nil) || got != (verdict == store.Committed) || got != (n == 1) {
			t.Fatalf("round %d: Atomic says %v, %v, it stands: %v, with %d effects", i, verdict, err, got, n)
		}
		count(err, &done, &broken)
	}
	if done == 0 || broken == 0 {
		t.Errorf("of %d calls %d were done and %d broken off: nothing was shown", 2*rounds, done, broken)
	}
}

func count(err error, done, broken *int) {
	if err == nil {
		*done++
	} else {
		*broken++
	}
}

// endingSoon calls f with a context that ends at some time while f runs.
func endingSoon(t *testing.T, f func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1000))*time.Microsecond)
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

// A transaction of another database is refused, not written to.
func TestSwapTxOfAnotherDatabase(t *testing.T) {
	mine, theirs := open(t), open(t)
	tx := begin(t, theirs)
	c := create("key", store.Pending, 1)
	if answers, err := sqlite.New(mine).SwapTx(t.Context(), tx, []store.Change{c}); err == nil {
		t.Errorf("SwapTx = %+v, want an error", answers)
	}
	if answers, err := sqlite.New(mine).SwapTx(t.Context(), nil, []store.Change{c}); err == nil {
		t.Errorf("SwapTx without a transaction = %+v, want an error", answers)
	}
}

// A caller's transaction that has read first cannot write after another one has
// written. It is not Busy, because a retry does not help.
func TestSwapTxAfterALostSnapshot(t *testing.T) {
	db := plain(t)
	mustExec(t, db, `PRAGMA journal_mode = WAL`)
	s := sqlite.New(db)
	tx := begin(t, db)
	var n int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	mustForce(t, s, create("somebody else", store.Pending, 1))
	answers, err := s.SwapTx(t.Context(), tx, []store.Change{create("mine", store.Pending, 1)})
	if err == nil {
		t.Errorf("SwapTx on an old snapshot = %+v, want an error", answers)
	}
}

// Where another transaction has the lock, a caller's own finds Busy.
func TestSwapTxBusy(t *testing.T) {
	db := plain(t)
	s := sqlite.New(db)
	tx := begin(t, db)
	other := connect(t, db)
	mustExec(t, other, `BEGIN IMMEDIATE`)
	c := create("key", store.Pending, 1)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Busy {
		t.Errorf("SwapTx beside a writer = %+v, %v, want Busy", answers, err)
	}
	mustExec(t, other, `ROLLBACK`)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Applied(c) {
		t.Errorf("SwapTx asked again = %+v, %v, want in force", answers, err)
	}
}

// The last change speaks of the record that is held.
func TestLastChangeOfAnotherRecord(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	other := create("other", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), store.NewID("test", "scope", "mine"), true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return &other, effect(ctx, tx, "mine")
		})
	if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrSuperseded) {
		t.Errorf("Atomic = %v, %v, want NotCommitted and an error of its own", verdict, err)
	}
	if stands(t, s, other) != (store.Token{}) || effects(t, db, "mine") != 0 {
		t.Error("it has happened all the same")
	}
}

// Without a last change a transaction commits what run wrote.
func TestNoLastChange(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	verdict, err := s.Atomic(t.Context(), store.NewID("test", "scope", "mine"), true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return nil, effect(ctx, tx, "mine")
		})
	if verdict != store.Committed || err != nil || effects(t, db, "mine") != 1 {
		t.Errorf("Atomic = %v, %v, with %d effects, want it committed", verdict, err, effects(t, db, "mine"))
	}
}

// Prepared statements of the database work in the handler's transaction.
func TestHandlerUsesPreparedStatements(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	stmt, err := db.PrepareContext(t.Context(), `INSERT INTO effects VALUES (?)`)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			_, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, "key")
			return &last, err
		})
	if verdict != store.Committed || err != nil || effects(t, db, "key") != 1 {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
}

// Savepoints of the handler's own are its affair, also those it leaves open.
func TestHandlerUsesSavepoints(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			return &last, errors.Join(
				effect(ctx, tx, "kept"), do(ctx, tx, `SAVEPOINT mine`), effect(ctx, tx, "undone"),
				do(ctx, tx, `ROLLBACK TO mine`), effect(ctx, tx, "kept"))
		})
	if verdict != store.Committed || err != nil {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
	if kept, undone := effects(t, db, "kept"), effects(t, db, "undone"); kept != 2 || undone != 0 {
		t.Errorf("%d effects kept and %d undone, want 2 and 0", kept, undone)
	}
}

// Purge checks the state, too, also for rows that were written by hand.
func TestPurgeSparesUnfinishedRecords(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	for _, state := range store.States() {
		mustForce(t, s, create(state.String(), state, 1))
	}
	mustExec(t, db, `UPDATE semel_records SET expires = 1`)
	if n, err := s.Purge(t.Context(), 10); n != 3 || err != nil {
		t.Errorf("Purge = %d, %v, want 3", n, err)
	}
	for _, state := range []store.State{store.InProgress, store.InDoubt} {
		if got := stands(t, s, create(state.String(), state, 1)); got.State != state {
			t.Errorf("%v is gone", state)
		}
	}
}

// An Expire that has come this very moment does not read as never.
func TestExpireOfThisMoment(t *testing.T) {
	db := open(t)
	s := sqlite.New(db)
	tx := begin(t, db)
	for i := range 50 {
		c := create(fmt.Sprint(i), store.Succeeded, 1)
		c.To.Expire = 1
		other := create(fmt.Sprint(i), store.Succeeded, 2)
		for _, c := range []store.Change{c, other} {
			answers, err := s.SwapTx(t.Context(), tx, []store.Change{c})
			if err != nil {
				t.Fatal(err)
			}
			if r := answers[0].Record; r != nil && r.Expire >= 0 {
				t.Fatalf("Expire reads %v, want less than zero", r.Expire)
			}
		}
	}
}
