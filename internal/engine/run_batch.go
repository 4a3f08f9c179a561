package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// send sends the function's statements, based on an assumed current record. If the
// record is another one, the function is called again. It waits for a connection
// until waiting ends.
func (i *inline) send(ctx, waiting context.Context) (store.Verdict, error) {
	for range maxRounds {
		answer, verdict, err := i.sendOnce(ctx, waiting)
		result := protocol.Classify(protocol.TxEnd{Verdict: verdict, Err: err, Called: i.ran, Failed: i.fnErr != nil})
		switch {
		case errors.Is(err, store.ErrNotStarted):
			i.ran = false
			return verdict, err
		case result == protocol.TxRolledBack: // because of an error of a statement
			i.change = store.Change{} // the failed change must not be stored
			_, err = i.functionFailed(ctx, err)
			return verdict, err
		case err != nil, verdict == store.Committed:
			return verdict, err
		case answer.Busy:
			i.ran, i.busy, i.answer = false, true, protocol.Wait
			return store.NotCommitted, callerr.ErrNotRun
		case answer.Err != nil:
			return store.NotCommitted, answer.Err
		}
		i.setBase(recordOf(answer))
	}
	return store.NotCommitted, store.ErrConflict
}

// sendOnce runs one transaction of send.
func (i *inline) sendOnce(ctx, waiting context.Context) (store.SwapResult, store.Verdict, error) {
	if !i.mayRun(ctx) {
		return store.SwapResult{}, store.NotCommitted, callerr.ErrNotRun
	}
	v, send, err := i.build(ctx)
	if err != nil {
		_, err = i.functionFailed(ctx, err)
		return store.SwapResult{}, store.NotCommitted, err
	}
	i.succeed(ctx, v)
	return send(waiting, i.change, !i.call.op.optimistic)
}

// build calls the function that builds the statements, if an attempt is left.
func (i *inline) build(ctx context.Context) (any, sendFunc, error) {
	if err := i.call.op.exhausted(&i.current, i.current.Attempt+1); err != nil {
		return nil, nil, err
	}
	within, _ := withTx(i.attempt.trace(ctx), *i.call, nil, nil)
	return i.batch(within)
}

type (
	// sendFunc sends the statements with the record's change.
	sendFunc func(ctx context.Context, change store.Change, hold bool) (store.SwapResult, store.Verdict, error)
	// batchFunc returns the result and the function that sends the statements.
	batchFunc func(ctx context.Context) (any, sendFunc, error)
)
