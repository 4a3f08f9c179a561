package semel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type runInTx = func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error)

// Atomic begins and ends a transaction as the plan says.
func (w *wire) Atomic(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	f := w.enter(request{kind: atomicCall, id: id})
	defer w.createExisting()
	if err := f.pass(ctx); err != nil {
		return store.NotCommitted, err
	}
	switch {
	case f.before != nil:
		return store.NotCommitted, f.before
	case f.hang:
		<-ctx.Done()
		return store.NotCommitted, ctx.Err()
	case f.commit == commitOpen:
		return w.stayOpen(ctx, id, hold, run)
	}
	verdict, err := w.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		if f.busy {
			current = store.SwapResult{Busy: true}
		}
		if f.forge != nil {
			current = *f.forge
		}
		c, err := run(ctx, tx, current)
		if c != nil {
			w.note(c)
		}
		if f.commit == commitDropped || f.commit == commitRefused {
			return nil, errors.Join(err, errCut, f.refuse)
		}
		return c, err
	})
	switch f.commit {
	case commitAnswered, commitOpen:
		return verdict, err
	case commitApplied:
		return store.Unknown, fmt.Errorf("commit: %w", errCut)
	case commitDropped:
		return store.Unknown, fmt.Errorf("commit: %w", err)
	case commitRefused:
		return store.NotCommitted, fmt.Errorf("commit: %w", err)
	case commitNoted:
		return verdict, errors.Join(err, errCut)
	default:
		return verdict, err
	}
}

// stayOpen runs the transaction, and answers that nothing is known while it is
// still open in the database: its commit comes when release lets it, and must
// find its place then.
func (w *wire) stayOpen(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	ran := make(chan struct{})
	go func() {
		_, err := w.Store.Atomic(context.WithoutCancel(ctx), id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			close(ran)
			<-w.late
			return c, err
		})
		w.lateDone <- err
	}()
	<-ran
	return store.Unknown, fmt.Errorf("commit: %w", errCut)
}

// release lets the open transaction go on to its commit, and returns what came
// of it.
func (w *wire) release() error {
	close(w.late)
	return <-w.lateDone
}
