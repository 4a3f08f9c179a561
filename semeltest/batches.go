package semeltest

import (
	"context"
	"fmt"
	"reflect"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Statement is what the suite wants of one statement in a batch.
type Statement struct {
	// Effect is the key that has its effect once more, as Subject.Effect writes it.
	Effect string
	// Fails has the database refuse it instead, with an error that is neither
	// store.ErrConflict nor store.ErrInterrupted. It writes nothing.
	Fails bool
}

// Batches lets the suite hand over statements all together, to a store that is a
// [store.Batcher]. [BatchesOf] makes it.
type Batches[Tx any] struct {
	send   func(ctx context.Context, c store.Change, hold bool, all []Statement) (store.SwapResult, store.Verdict, error)
	do     func(ctx context.Context, e *semel.Engine[Tx], c semel.Call, fn statementsFunc) (string, bool, error)
	faulty func(f *Faulty[Tx]) store.TxStore[Tx]
}

// statementsFunc says a result, and what is to be done for it.
type statementsFunc = func() (string, []Statement, error)

// BatchesOf says how s, which is Subject.Store or what that is made of, is given
// statements: build makes a batch of them, in their order, as its driver knows it.
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
		faulty: func(f *Faulty[Tx]) store.TxStore[Tx] { return &faultyBatcher[Tx, B]{f, s} },
	}
}

// takesBatches reports whether a store is a store.Batcher of anything.
func takesBatches(s any) bool {
	_, takes := reflect.TypeOf(s).MethodByName("AtomicBatch")
	return takes
}

// batches says why a subject takes no statements all together.
func batches[Tx any](s Subject[Tx]) string {
	if s.Batches == nil {
		return "the store is no store.Batcher"
	}
	return ""
}

// failing is f with the batches of the store behind it, if that takes any.
func (r *txRig[Tx]) failing(f *Faulty[Tx]) store.TxStore[Tx] {
	if r.subject.Batches == nil {
		return f
	}
	return r.subject.Batches.faulty(f)
}

// faultyBatcher is a Faulty whose batches fail too.
type faultyBatcher[Tx, B any] struct {
	*Faulty[Tx]

	inner store.Batcher[B]
}

// AtomicBatch implements store.Batcher. With Refuse it does not begin; with Abort
// it is sent and rolled back, and the verdict is Unknown.
func (f *faultyBatcher[Tx, B]) AtomicBatch(ctx context.Context, c store.Change, hold bool, batch B) (store.SwapResult, store.Verdict, error) {
	fault := f.fault("AtomicBatch", []store.Change{c})
	switch fault {
	case Refuse:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, ErrInjected)
	case Abort:
		return store.SwapResult{}, store.Unknown, ErrInjected
	case None, Lose:
	}
	answer, verdict, err := f.inner.AtomicBatch(ctx, c, hold, batch)
	if fault == Lose {
		return store.SwapResult{}, store.Unknown, ErrInjected
	}
	return answer, verdict, err
}
