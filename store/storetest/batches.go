package storetest

import (
	"context"
	"fmt"
	"reflect"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Statement describes one statement of a batch.
type Statement struct {
	// Effect is the key whose effect the statement writes, as Subject.Effect does.
	Effect string
	// Fails makes the database reject the statement, with an error that is neither
	// store.ErrConflict nor store.ErrInterrupted. The statement writes nothing.
	Fails bool
}

// Batches lets the suite send statements to a [store.Batcher]. [BatchesOf] makes
// it.
type Batches[Tx any] struct {
	send   func(ctx context.Context, c store.Change, hold bool, all []Statement) (store.SwapResult, store.Verdict, error)
	do     func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn statementsFunc) (string, bool, error)
	faulty func(f *FaultyTx[Tx]) store.TxStore[Tx]
}

// statementsFunc returns a result and the statements that produce it.
type statementsFunc = func() (string, []Statement, error)

// BatchesOf returns the Batches of s, which is Subject.Store or the store inside
// it. build makes the driver's batch of the statements, in their order.
func BatchesOf[Tx, B any](s interface {
	store.TxStore[Tx]
	store.Batcher[B]
}, build func(all []Statement) B,
) *Batches[Tx] {
	return &Batches[Tx]{
		send: func(ctx context.Context, c store.Change, hold bool, all []Statement) (store.SwapResult, store.Verdict, error) {
			return s.AtomicBatch(ctx, c, hold, build(all))
		},
		do: func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn statementsFunc) (string, bool, error) {
			return semel.DoBatch(ctx, e, c, func(context.Context) (string, B, error) {
				v, all, err := fn()
				return v, build(all), err
			})
		},
		faulty: func(f *FaultyTx[Tx]) store.TxStore[Tx] { return WithBatches(f, s) },
	}
}

// takesBatches reports whether s is a store.Batcher of any batch type.
func takesBatches(s any) bool {
	_, takes := reflect.TypeOf(s).MethodByName("AtomicBatch")
	return takes
}

// lacksBatches returns why the subject does not accept batches.
func (r *txHarness[Tx]) lacksBatches() string {
	if r.subject.Batches == nil {
		return "the store is no store.Batcher"
	}
	return ""
}

// failing returns f with the batches of its store, if the store accepts them.
func (r *txHarness[Tx]) failing(f *FaultyTx[Tx]) store.TxStore[Tx] {
	if r.subject.Batches == nil {
		return f
	}
	return r.subject.Batches.faulty(f)
}

// WithBatches returns f with the batches of its store, which fail too.
func WithBatches[Tx, B any](f *FaultyTx[Tx], s store.Batcher[B]) store.TxStore[Tx] {
	return &faultyBatcher[Tx, B]{f, s}
}

// faultyBatcher is a FaultyTx whose batches fail too.
type faultyBatcher[Tx, B any] struct {
	*FaultyTx[Tx]

	batcher store.Batcher[B]
}

// AtomicBatch implements store.Batcher. A batch with Rollback and After is sent and
// rolled back, and the verdict is Unknown.
func (f *faultyBatcher[Tx, B]) AtomicBatch(ctx context.Context, c store.Change, hold bool, batch B) (store.SwapResult, store.Verdict, error) {
	fault := f.begin(Call{Method: "AtomicBatch", Changes: []store.Change{c}})
	defer f.end()
	if fault.Rollback != nil {
		return store.SwapResult{}, store.Unknown, fault.Rollback
	}
	if err := fault.reach(ctx); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	answer, verdict, err := f.batcher.AtomicBatch(ctx, c, hold, batch)
	if lost := fault.reply(ctx); lost != nil {
		return store.SwapResult{}, store.Unknown, lost
	}
	return answer, verdict, err
}
