package storetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/semelgo/semel/store"
)

// ErrInjected is the error of a call that Faulty fails.
var ErrInjected = errors.New("storetest: injected fault")

// Fault is what happens to a call.
type Fault uint8

const (
	// None makes the call normally.
	None Fault = iota
	// Refuse fails the call before it reaches the store. A transaction does
	// not begin: NotCommitted.
	Refuse
	// Abort is Refuse for all calls except Atomic. Atomic calls run, rolls back,
	// and returns Unknown.
	Abort
	// Lose applies the call and loses its reply. For a transaction that commits:
	// Unknown.
	Lose
)

// String returns the fault's name.
func (f Fault) String() string {
	switch f {
	case None:
		return "None"
	case Refuse:
		return "Refuse"
	case Abort:
		return "Abort"
	case Lose:
		return "Lose"
	default:
		return "Fault(?)"
	}
}

// Call describes a call before it is made.
type Call struct {
	N       int            // 1 for the first call of this store
	Method  string         // as in store.TxStore
	Changes []store.Change // of Swap and SwapTx
}

// Faulty is a store with injected faults. It is no store.Auditor, and does not
// count calls of Capabilities.
type Faulty[Tx any] struct {
	inner  store.TxStore[Tx]
	decide func(Call) Fault
	calls  atomic.Int64
}

// NewFaulty returns s with the faults that decide returns. decide is called before
// each call, on the goroutine that makes it.
func NewFaulty[Tx any](s store.TxStore[Tx], decide func(Call) Fault) *Faulty[Tx] {
	return &Faulty[Tx]{inner: s, decide: decide}
}

// Calls returns how many calls were made so far.
func (f *Faulty[Tx]) Calls() int { return int(f.calls.Load()) }

func (f *Faulty[Tx]) fault(method string, changes []store.Change) Fault {
	return f.decide(Call{N: int(f.calls.Add(1)), Method: method, Changes: changes})
}

// spoil makes the call unless the fault prevents it, and drops a reply that is to
// be lost.
func spoil[A any](fault Fault, call func() (A, error)) (A, error) {
	var none A
	if fault == Refuse || fault == Abort {
		return none, ErrInjected
	}
	answer, err := call()
	if fault == Lose {
		return none, ErrInjected
	}
	return answer, err
}

// Swap implements store.Store.
func (f *Faulty[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	return spoil(f.fault("Swap", changes), func() ([]store.SwapResult, error) { return f.inner.Swap(ctx, changes) })
}

// Get implements store.Store.
func (f *Faulty[Tx]) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	return spoil(f.fault("Get", nil), func() ([]store.SwapResult, error) { return f.inner.Get(ctx, ids) })
}

// Scan implements store.Store.
func (f *Faulty[Tx]) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	return spoil(f.fault("Scan", nil), func() ([]store.Record, error) { return f.inner.Scan(ctx, q) })
}

// Purge implements store.Store.
func (f *Faulty[Tx]) Purge(ctx context.Context, limit int) (int, error) {
	return spoil(f.fault("Purge", nil), func() (int, error) { return f.inner.Purge(ctx, limit) })
}

// Capabilities implements store.Store. It never fails by a fault.
func (f *Faulty[Tx]) Capabilities(ctx context.Context) (store.Capabilities, error) {
	return f.inner.Capabilities(ctx)
}

// SwapTx implements store.TxStore.
func (f *Faulty[Tx]) SwapTx(ctx context.Context, tx Tx, changes []store.Change) ([]store.SwapResult, error) {
	return spoil(f.fault("SwapTx", changes), func() ([]store.SwapResult, error) { return f.inner.SwapTx(ctx, tx, changes) })
}

// Atomic implements store.TxStore.
func (f *Faulty[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	fault := f.fault("Atomic", nil)
	if fault == Refuse {
		return store.NotCommitted, ErrInjected
	}
	sent := false // whether a commit was sent whose reply can be lost
	verdict, err := f.inner.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
		last, err := run(ctx, tx, stands)
		sent = last != nil || err == nil
		if sent && fault == Abort {
			return nil, ErrInjected
		}
		return last, err
	})
	if sent && fault != None {
		return store.Unknown, ErrInjected
	}
	return verdict, err
}
