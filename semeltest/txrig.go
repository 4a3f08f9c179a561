package semeltest

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel/store"
)

// errOwn is what a run fails with by its own will.
var errOwn = errors.New("semeltest: the run's own error")

// txRig is a rig whose store has transactions.
type txRig[Tx any] struct {
	*rig

	tx      store.TxStore[Tx]
	subject Subject[Tx]
}

// runFunc is what Atomic calls.
type runFunc[Tx any] = func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error)

func newTxRig[Tx any](t *testing.T, s Subject[Tx]) *txRig[Tx] {
	t.Helper()
	if s.Store == nil {
		t.Fatal("Subject.Store is nil")
	}
	r := &txRig[Tx]{rig: newRig(t, s.Store, s.Advance), tx: s.Store, subject: s}
	if r.caps.SameTx && (s.Effect == nil || s.Effects == nil) {
		t.Fatal("Capabilities say SameTx: Subject.Effect and Subject.Effects are required")
	}
	if r.caps.SameTx && s.Batches == nil && takesBatches(s.Store) {
		t.Fatal("the store is a store.Batcher: Subject.Batches is required")
	}
	return r
}

// inTx lists checks that need SameTx.
func inTx[Tx any](checks ...check[Tx]) []check[Tx] {
	for i, c := range checks {
		checks[i].run = func(r *txRig[Tx]) {
			if !r.caps.SameTx {
				r.Skip("Capabilities do not say SameTx")
			}
			c.run(r)
		}
	}
	return checks
}

// act writes an effect of key within a run.
func (r *txRig[Tx]) act(ctx context.Context, tx Tx, key string) {
	r.Helper()
	if err := r.subject.Effect(ctx, tx, key); err != nil {
		r.Errorf("Effect(%s): %v", key, err)
	}
}

func (r *txRig[Tx]) mustEffects(key string, want int) {
	r.Helper()
	if got := r.subject.Effects(key); got != want {
		r.Errorf("%s has %d effects, want %d", key, got, want)
	}
}

// ending is a run that has one effect and then ends as told.
func (r *txRig[Tx]) ending(key string, last *store.Change, err error) runFunc[Tx] {
	return func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, key)
		return last, err
	}
}

// mustCommit runs a transaction and requires that it commits.
func (r *txRig[Tx]) mustCommit(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	if verdict != store.Committed || err != nil {
		r.Fatalf("Atomic = %v, %v, want Committed, nil", verdict, err)
	}
}

// mustRaise runs a transaction and requires that its last change fails it.
func (r *txRig[Tx]) mustRaise(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrSuperseded) {
		r.Errorf("Atomic = %v, %v, want NotCommitted, ErrSuperseded", verdict, err)
	}
}

// mustRollBack runs a transaction that ends with errOwn.
func (r *txRig[Tx]) mustRollBack(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
	if verdict != store.NotCommitted || !errors.Is(err, errOwn) {
		r.Errorf("Atomic = %v, %v, want NotCommitted and the run's own error", verdict, err)
	}
}

// held reports whether a transaction has the right to id.
func (r *txRig[Tx]) held(id store.ID) bool {
	r.Helper()
	var busy bool
	r.mustRollBack(id, true, func(_ context.Context, _ Tx, stands store.SwapResult) (*store.Change, error) {
		busy = stands.Busy
		return nil, errOwn
	})
	return busy
}
