package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// errRun is the error of a run function that fails on purpose.
var errRun = errors.New("storetest: the run's own error")

// txHarness is a harness for a store with transactions.
type txHarness[Tx any] struct {
	*harness

	tx      store.TxStore[Tx]
	subject Subject[Tx]
}

// runFunc is the function that Atomic calls.
type runFunc[Tx any] = func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error)

func newTxHarness[Tx any](t *testing.T, s Subject[Tx]) *txHarness[Tx] {
	t.Helper()
	if s.Store == nil {
		t.Fatal("Subject.Store is nil")
	}
	r := &txHarness[Tx]{harness: newHarness(t, s.plain()), tx: s.Store, subject: s}
	if s.Effect == nil || s.Effects == nil {
		t.Fatal("Subject.Effect and Subject.Effects are required")
	}
	if s.Batches == nil && takesBatches(s.Store) {
		t.Fatal("the store is a store.Batcher: Subject.Batches is required")
	}
	return r
}

// addEffect writes an effect of key in the transaction.
func (r *txHarness[Tx]) addEffect(ctx context.Context, tx Tx, key string) {
	r.Helper()
	check.NoError(r, r.subject.Effect(ctx, tx, key), "Effect(%s)", key)
}

func (r *txHarness[Tx]) mustHaveEffects(key string, want int) {
	r.Helper()
	check.Equal(r, r.subject.Effects(key), want, "%s: effects", key)
}

// effectThen returns a run function that writes one effect and returns last and
// err.
func (r *txHarness[Tx]) effectThen(key string, last *store.Change, err error) runFunc[Tx] {
	return func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, key)
		return last, err
	}
}

// mustCommit runs a transaction and requires that it commits.
func (r *txHarness[Tx]) mustCommit(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	if verdict != store.Committed || err != nil {
		r.Fatalf("Atomic = %v, %v, want Committed, nil", verdict, err)
	}
}

// mustSupersede runs a transaction and requires ErrSuperseded.
func (r *txHarness[Tx]) mustSupersede(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	check.ResultIs(verdict, err)(r, store.NotCommitted, store.ErrSuperseded, "Atomic (want NotCommitted, ErrSuperseded)")
}

// mustRollBack runs a transaction that fails with errRun.
func (r *txHarness[Tx]) mustRollBack(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	check.ResultIs(verdict, err)(r, store.NotCommitted, errRun, "Atomic (want NotCommitted and the run's own error)")
}

// needExclusion skips a check in which other writers learn of an open transaction, if
// the store's transactions exclude none.
func (r *txHarness[Tx]) needExclusion() {
	r.Helper()
	if r.caps.Exclusion == store.ExcludesNothing {
		r.Skip("Capabilities say ExcludesNothing")
	}
}

// isLocked reports whether another transaction holds the right to id.
func (r *txHarness[Tx]) isLocked(id store.ID) bool {
	r.Helper()
	var busy bool
	r.mustRollBack(id, true, func(_ context.Context, _ Tx, current store.SwapResult) (*store.Change, error) {
		busy = current.Busy
		return nil, errRun
	})
	return busy
}
