package semel

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// runBatch runs, as one transaction, the statements that build hands over, or answers
// from the record.
func (c *Core) runBatch(ctx context.Context, call Call, build batchFunc) (*Outcome, error) {
	return c.runOnce(ctx, call, inline{batch: build})
}

// send sends what the function hands over, on what is taken to stand; when something
// else does, it says so, and the function is asked once more. It does not wait for a
// connection longer than waiting lasts.
func (i *inline) send(ctx, waiting context.Context) (store.Verdict, error) {
	for range maxRounds {
		answer, verdict, err := i.sendOnce(ctx, waiting)
		switch {
		case errors.Is(err, store.ErrNotStarted):
			i.ran = false
			return verdict, err
		case err != nil && verdict == store.NotCommitted && i.ran && i.fnErr == nil && !isInfraError(err):
			i.change = store.Change{} // what was to be committed is not to be kept
			_, err = i.functionFailed(ctx, err)
			return verdict, err
		case err != nil, verdict == store.Committed:
			return verdict, err
		case answer.Busy:
			i.ran, i.busy, i.answer = false, true, answerWait
			return store.NotCommitted, errNotRun
		case answer.Err != nil:
			return store.NotCommitted, answer.Err
		}
		i.current, i.change = recordOf(answer), store.Change{}
	}
	return store.NotCommitted, store.ErrConflict
}

// sendOnce is one transaction of send.
func (i *inline) sendOnce(ctx, waiting context.Context) (store.SwapResult, store.Verdict, error) {
	if !i.mayRun() {
		return store.SwapResult{}, store.NotCommitted, errNotRun
	}
	v, send, err := i.build(ctx)
	if err != nil {
		_, err = i.functionFailed(ctx, err)
		return store.SwapResult{}, store.NotCommitted, err
	}
	i.change = next(i.current, i.event(store.Succeeded, i.outcome(ctx, v))).change
	return send(waiting, i.change, !i.call.op.optimistic)
}

// build has the function build its statements, if there is an attempt left for them.
func (i *inline) build(ctx context.Context) (any, sendFunc, error) {
	if err := i.call.op.exhausted(i.current, i.current.Attempt+1); err != nil {
		return nil, nil, err
	}
	return i.batch(withOperation(ctx, *i.call, nil, nil))
}
