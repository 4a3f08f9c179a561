package storetest

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// Atomic implements store.TxStore.
func (f *Faulty[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
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
	verdict, err := f.inner.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
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
func (f *Faulty[Tx]) keepOpen(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	ran := make(chan struct{})
	go func() {
		_, err := f.inner.Atomic(context.WithoutCancel(ctx), id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
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
