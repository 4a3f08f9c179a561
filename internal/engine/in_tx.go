package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// InTx runs fn in a transaction that commits together with the outcome of the
// attempt of ctx.
func InTx[T, Tx any](ctx context.Context, e *Engine[Tx], fn func(ctx context.Context, tx Tx) (T, error)) (T, error) {
	var v T
	a, ok := AttemptOf(ctx)
	switch {
	case !ok || a.c != e.Core:
		return v, callerr.Invalid("ctx", "does not belong to an attempt of this engine")
	case !a.policy.Transactional():
		return v, callerr.Invalid("Policy", "must be Atomic for InTx")
	}
	err := a.runTx(ctx, func(ctx context.Context, tx any) (any, error) {
		var err error
		v, err = fn(ctx, tx.(Tx))
		if a.adapter != nil { // the adapter encodes the value
			return v, err
		}
		return &v, err
	})
	return v, err
}

// runTx runs fn and ends the attempt in one transaction.
func (a *Attempt) runTx(ctx context.Context, fn func(context.Context, any) (any, error)) error {
	switch {
	case a.ended.Load() || a.txOutcome.Load() != nil:
		return callerr.Invalid("Attempt", "has its outcome already")
	case !a.tx.running.CompareAndSwap(false, true):
		return callerr.Invalid("Attempt", "runs a transaction already")
	}
	a.tx.tried.Store(true)
	defer func() { // also on a panic, from which the operation may recover
		a.tx.open.Store(false)
		a.tx.running.Store(false)
		if s := a.txOutcome.Load(); a.adapter != nil && (s == nil || s.err != nil) {
			a.adapter.Undone()
		}
	}()
	result, err := runOneTx(ctx, a, fn)
	for lost := new(conflictCounter); result == protocol.TxConflict && lost.retry(ctx, result); {
		a.emit(ctx, event.Retried, a.Record(), err)
		if a.adapter != nil {
			a.adapter.Undone()
		}
		result, err = runOneTx(ctx, a, fn)
	}
	return err
}

// runOneTx runs one transaction of runTx.
func runOneTx(ctx context.Context, a *Attempt, fn func(context.Context, any) (any, error)) (protocol.TxResult, error) {
	var change store.Change
	var fnErr error
	var within *txContext // nil: fn was not called
	verdict, err := a.c.atomic(ctx, a.call.id, false, func(ctx context.Context, tx any, _ store.SwapResult) (*store.Change, error) {
		a.tx.open.Store(true)
		within = &txContext{Context: ctx, c: a.c, tx: tx}
		v, err := fn(within, tx) //nolint:contextcheck // a txContext inherits ctx
		if err == nil && a.adapter != nil {
			v, err = a.adapter.Encode(v)
		}
		if err != nil {
			fnErr = err
			return nil, callerr.WithoutInnerErrors(err)
		}
		var e protocol.Event
		a.endEvent(ctx, &e, a.result(ctx, v, nil), nil)
		change = protocol.Next(a.Record(), e).Change
		return &change, nil
	})
	if within != nil {
		within.callAfter()
	}
	result := protocol.Classify(protocol.TxEnd{Verdict: verdict, Err: err, Called: within != nil, Failed: fnErr != nil})
	return result, afterTx(ctx, a, result, &change, fnErr, err)
}

// afterTx returns the error of InTx, and sets the outcome of the attempt if the
// transaction has decided it. change is its last statement, if it came so far.
func afterTx(ctx context.Context, a *Attempt, result protocol.TxResult, change *store.Change, fnErr, err error) error {
	returned := change.To.Token != (store.Token{})
	switch result {
	case protocol.TxCommitted:
		return decideByTx(ctx, a, txEnd{current: recordAfter(*change, a.Record())}, nil)
	case protocol.TxCommittedByHandler:
		return decideByTx(ctx, a, a.committedByHandler(ctx, change, fnErr, err), err)
	case protocol.TxEndedByHandler:
		return decideByTx(ctx, a, a.endedByHandler(ctx, err), err)
	case protocol.TxUnknown:
		return decideByTx(ctx, a, a.unknownCommit(ctx, change, err), err)
	case protocol.TxConflict:
		return callerr.InfraError(err, false)
	case protocol.TxInterrupted:
		return callerr.InfraError(err, fnErr != nil || returned)
	case protocol.TxHandlerFailed:
		return fnErr
	case protocol.TxSuperseded:
		return fmt.Errorf("%w: %w", callerr.ErrLeaseLost, err)
	case protocol.TxNotCalled, protocol.TxNoPartition, protocol.TxRolledBack:
	}
	return &callerr.TxError{Err: err, Ran: returned}
}

// decideByTx sets the outcome of the attempt that its own transaction has decided, for
// End, and returns the error of InTx. If another attempt took over, the domain's
// writes are rolled back, and End returns the answer of the current record.
//
// It stops renewing the lease: a renewal would find the outcome in the record and
// take it for another caller's.
func decideByTx(ctx context.Context, a *Attempt, end txEnd, cause error) error {
	if end.superseded {
		return fmt.Errorf("%w: %w", callerr.ErrLeaseLost, cause)
	}
	a.renewer.stop()
	a.txOutcome.Store(&end)
	if end.err == nil {
		a.emit(ctx, event.Succeeded, end.current, nil)
	}
	return end.err
}
