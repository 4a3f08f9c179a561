package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// keepFailure runs a transaction that has an effect, fails, and wants its failure
// kept.
func keepFailure(t *testing.T, s *sqlite.Store) (store.Change, store.Verdict, error) {
	t.Helper()
	failed := create("key", store.Failed, 1)
	verdict, err := s.Atomic(t.Context(), failed.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			if err := effect(ctx, tx, "key"); err != nil {
				t.Errorf("effect: %v", err)
			}
			return &failed, errHandler
		})
	return failed, verdict, err
}

// afterRollback does something once the transaction is over that has failed, and
// before the one in which its failure is kept.
func afterRollback(b *breakable, do func()) {
	b.breakWith(func(text string, run func() error, _ func(string) error) error {
		err := run()
		if text == "tx.Rollback" {
			b.breakWith(func(_ string, run func() error, _ func(string) error) error { return run() })
			do()
		}
		return err
	})
}

// A failure is kept in a second transaction. If another process holds the lock by
// then, nothing is kept, and nothing is left of the first.
func TestFailureThatCannotBeKept(t *testing.T) {
	b := breaking(t, true)
	s := sqlite.New(b.DB)
	var theirs *sql.Tx
	afterRollback(b, func() {
		s.SetPatience(20 * time.Millisecond) // only now: the first transaction must begin on a slow machine too
		theirs = begin(t, b.DB)
	})
	failed, verdict, err := keepFailure(t, s)
	if verdict != store.NotCommitted || !errors.Is(err, sqlite.ErrBusy) {
		t.Errorf("Atomic = %v, %v, want NotCommitted, ErrBusy", verdict, err)
	}
	if n := effects(t, b.DB, "key"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
	if err := theirs.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, b.DB, s, failed)
}

// If another process was quicker, what it wrote stands.
func TestFailureThatIsOvertaken(t *testing.T) {
	b := breaking(t, true)
	s, theirs := sqlite.New(b.DB), create("key", store.Succeeded, 2)
	afterRollback(b, func() { mustForce(t, sqlite.New(b.DB), theirs) })
	_, verdict, err := keepFailure(t, s)
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("Atomic = %v, %v, want NotCommitted, ErrSuperseded", verdict, err)
	}
	if got := stands(t, s, theirs); got != theirs.To.Token {
		t.Errorf("%+v stands, want what the other process wrote", got)
	}
	if n := effects(t, b.DB, "key"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}
