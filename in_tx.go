package semel

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// TxOf returns the transaction that e opened for the operation of ctx: inside the
// function of [DoTx] or [InTx], or inside a handler whose adapter runs it in one.
// It is the transaction of the innermost operation: inside the function of a [Do]
// that a function of DoTx calls there is none, because that function's writes must
// not commit or roll back with the outer transaction.
func TxOf[Tx any](ctx context.Context, e *Engine[Tx]) (Tx, bool) {
	var none Tx
	v, ok := ctx.Value(txKey{}).(txValue)
	if !ok || v.c != e.Core {
		return none, false
	}
	tx, ok := v.tx.(Tx)
	return tx, ok
}

// InTx runs fn in a transaction that commits together with the outcome of the
// attempt of ctx. It is for the function of [Do], or the handler of an adapter, if
// the operation's policy is [Atomic]: the claim is committed before; effect and
// outcome commit together, fenced. The function of such an operation must call InTx
// before it returns success, also if there is nothing to do.
//
// The value of fn is the outcome, unless the adapter encodes another. After an
// error the transaction is rolled back and the attempt continues: InTx may be
// called again. InTx runs fn again if the database aborted the transaction because
// of a conflict with others, up to eight times in all. After InTx has returned nil,
// the operation has succeeded, and nothing else that its function does changes that. If the function
// returns success although InTx failed, the attempt is released, because the effect
// was rolled back with the transaction.
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
		return codec.ValueRef[T]{Ptr: &v}, err
	})
	return v, err
}

// runTx runs fn and ends the attempt in one transaction.
func (a *Attempt) runTx(ctx context.Context, fn func(context.Context, any) (any, error)) error {
	if err := a.enterTx(); err != nil {
		return err
	}
	defer func() { // also on a panic, from which the operation may recover
		a.leaveTx()
		if s := a.txOutcome.Load(); a.adapter != nil && (s == nil || s.err != nil) {
			a.adapter.Undone()
		}
	}()
	result, err := a.inOneTx(ctx, fn)
	for lost := new(conflictCounter); result == protocol.TxConflict && lost.retry(ctx, result); {
		a.emit(ctx, event.Retried, a.Record(), err)
		if a.adapter != nil {
			a.adapter.Undone()
		}
		result, err = a.inOneTx(ctx, fn)
	}
	return err
}

// inOneTx runs one transaction of runTx.
func (a *Attempt) inOneTx(ctx context.Context, fn func(context.Context, any) (any, error)) (protocol.TxResult, error) {
	var change store.Change
	var fnErr error
	called := false
	verdict, err := a.c.atomic(ctx, a.call.id, false, func(ctx context.Context, tx any, _ store.SwapResult) (*store.Change, error) {
		a.openTx()
		called = true
		v, err := fn(withTx(ctx, a.c, tx), tx)
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
	result := protocol.Classify(protocol.TxEnd{Verdict: verdict, Err: err, Called: called, Failed: fnErr != nil})
	return result, a.afterTx(ctx, result, &change, fnErr, err)
}

// afterTx returns the error of InTx, and sets the outcome of the attempt if the
// transaction has decided it. change is its last statement, if it came so far.
func (a *Attempt) afterTx(ctx context.Context, result protocol.TxResult, change *store.Change, fnErr, err error) error {
	returned := change.To.Token != (store.Token{})
	switch result {
	case protocol.TxCommitted:
		return a.decided(ctx, txEnd{current: recordAfter(*change, a.Record())}, nil)
	case protocol.TxCommittedByHandler:
		return a.decided(ctx, a.committedByHandler(ctx, change, fnErr, err), err)
	case protocol.TxEndedByHandler:
		return a.decided(ctx, a.endedByHandler(ctx, err), err)
	case protocol.TxUnknown:
		return a.decided(ctx, a.unknownCommit(ctx, change, err), err)
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

// decided sets the outcome of the attempt that its own transaction has decided, for
// End, and returns the error of InTx. If another attempt took over, the domain's
// writes are rolled back, and End returns the answer of the current record.
//
// It stops renewing the lease: a renewal would find the outcome in the record and
// take it for another caller's.
func (a *Attempt) decided(ctx context.Context, end txEnd, cause error) error {
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

func (a *Attempt) enterTx() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended.Load() || a.txOutcome.Load() != nil:
		return callerr.Invalid("Attempt", "has its outcome already")
	case a.inTx:
		return callerr.Invalid("Attempt", "runs a transaction already")
	}
	a.inTx, a.triedTx = true, true
	return nil
}

func (a *Attempt) leaveTx() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inTx, a.txOpen = false, false
}

func (a *Attempt) openTx() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.txOpen = true
}
