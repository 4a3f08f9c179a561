package sqlite_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// storeFailure runs a transaction that has an effect and returns a failure to
// store.
func storeFailure(t *testing.T, s *sqlite.Store) (store.Change, store.Verdict, error) {
	t.Helper()
	failed := create("key", store.Failed, 1)
	verdict, err := s.Atomic(t.Context(), failed.To.ID, true,
		func(ctx context.Context, tx *sql.Tx, _ store.SwapResult) (*store.Change, error) {
			check.NoError(t, effect(ctx, tx, "key"), "effect")
			return &failed, errHandler
		})
	return failed, verdict, err
}

// afterRollback runs do after the failed transaction has ended, and before the one
// that stores its failure.
func afterRollback(b *faultyDriver, do func()) {
	b.setFault(func(text string, run func() error, _ func(string) error) error {
		err := run()
		if text == "tx.Rollback" {
			b.setFault(func(_ string, run func() error, _ func(string) error) error { return run() })
			do()
		}
		return err
	})
}

// A failure is stored in a second transaction. If another process holds the lock by
// then, no failure is stored, and nothing of the first transaction is left.
func TestFailureCannotBeStored(t *testing.T) {
	b := openFaulty(t, true)
	s := sqlite.New(b.DB, sqlite.Options{})
	var theirs *sql.Tx
	afterRollback(b, func() {
		s.SetPatience(20 * time.Millisecond) // not earlier: the first transaction must begin on a slow machine too
		theirs = begin(t, b.DB)
	})
	failed, verdict, err := storeFailure(t, s)
	check.ResultIs(verdict, err)(t, store.NotCommitted, sqlite.ErrBusy, "Atomic (want NotCommitted, ErrBusy)")
	check.Equal(t, effects(t, b.DB, "key"), 0, "effects")
	check.Require(t, theirs.Rollback())
	mustBeClean(t, b.DB, s, failed)
}

// If another process has written in between, its record stays.
func TestFailureIsSuperseded(t *testing.T) {
	b := openFaulty(t, true)
	s, theirs := sqlite.New(b.DB, sqlite.Options{}), create("key", store.Succeeded, 2)
	afterRollback(b, func() { mustApply(t, sqlite.New(b.DB, sqlite.Options{}), theirs) })
	_, verdict, err := storeFailure(t, s)
	check.ResultIs(verdict, err)(t, store.NotCommitted, store.ErrSuperseded, "Atomic (want NotCommitted, ErrSuperseded)")
	if got := current(t, s, theirs); got != theirs.To.Token {
		t.Errorf("%+v is current, want what the other process wrote", got)
	}
	check.Equal(t, effects(t, b.DB, "key"), 0, "effects")
}
