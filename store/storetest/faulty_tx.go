package storetest

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// FaultyTx is a [Faulty] over a store with transactions.
type FaultyTx[Tx any] struct {
	*Faulty

	tx    store.TxStore[Tx]
	late  chan struct{} // closed by Release
	ended chan error    // the end of the transaction that Release commits
}

// NewFaultyTx is [NewFaulty] for a store with transactions.
func NewFaultyTx[Tx any](s store.TxStore[Tx], decide func(Call) Fault) *FaultyTx[Tx] {
	return &FaultyTx[Tx]{Faulty: NewFaulty(s, decide), tx: s, late: make(chan struct{}), ended: make(chan error, 1)}
}

// Release commits the transaction that Fault.Open has kept open, and returns the
// error of its commit.
func (f *FaultyTx[Tx]) Release() error {
	close(f.late)
	return <-f.ended
}

// Plain returns f without the optional interfaces of a store.
func (f *FaultyTx[Tx]) Plain() store.TxStore[Tx] { return struct{ store.TxStore[Tx] }{f} }

// SwapTx implements store.TxStore.
func (f *FaultyTx[Tx]) SwapTx(ctx context.Context, tx Tx, changes []store.Change) ([]store.SwapResult, error) {
	return inject(ctx, f.Faulty, Call{Method: "SwapTx", Changes: changes}, func(fault Fault) ([]store.SwapResult, error) {
		if all, ok := fault.answers(len(changes)); ok {
			return all, nil
		}
		return f.tx.SwapTx(ctx, tx, changes)
	})
}

// Atomic implements store.TxStore.
func (f *FaultyTx[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	fault := f.begin(Call{Method: "Atomic", ID: id})
	defer f.end()
	early := fault
	early.Rollback = nil // it rolls a transaction back that has begun
	if err := early.reach(ctx); err != nil {
		return store.NotCommitted, err
	}
	if fault.Open {
		return f.keepOpen(ctx, id, hold, run)
	}
	sent := false // whether a commit, or the rollback of this fault, was sent
	verdict, err := f.tx.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		last, err := run(ctx, tx, fault.result(current))
		if last != nil {
			f.record(*last)
		}
		commits := last != nil || err == nil
		if commits && fault.Commit != nil {
			fault.Commit()
		}
		sent = commits || fault.Rollback != nil
		if fault.Rollback != nil {
			return nil, errors.Join(err, fault.Rollback)
		}
		return last, err
	})
	switch lost := fault.reply(ctx); {
	case lost != nil && sent:
		return store.Unknown, errors.Join(err, lost)
	case err == nil:
		return verdict, fault.Extra
	default:
		return verdict, err
	}
}

// keepOpen runs the transaction and returns Unknown while it is still open.
func (f *FaultyTx[Tx]) keepOpen(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	ran := make(chan struct{})
	go func() {
		_, err := f.tx.Atomic(context.WithoutCancel(ctx), id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
			last, err := run(ctx, tx, current)
			close(ran)
			<-f.late
			return last, err
		})
		f.ended <- err
	}()
	<-ran
	return store.Unknown, ErrInjected
}
