package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// DoBatch is [DoTx] for a function that returns all its statements at once: the
// record, the statements and the commit go to the database in one round trip, and
// are applied together or not at all.
func DoBatch[T, B, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context) (T, B, error)) (v T, replayed bool, err error) {
	if err := c.valid(); err != nil {
		return v, false, callerr.Seal(err)
	}
	switch {
	case !c.op.inline:
		return v, false, callerr.Seal(callerr.Invalid("Policy", "must be Atomic without a Lease or unset for DoBatch: all of it is one transaction"))
	case c.op.generation > 0:
		return v, false, callerr.Seal(callerr.Invalid("Generation", "is for DoTx: a batch writes one record"))
	}
	batcher, ok := e.store.(store.Batcher[B])
	if !ok {
		return v, false, callerr.Seal(callerr.Invalid("fn", "returns statements of a type that this store does not support"))
	}
	run := func(ctx context.Context) (any, sendFunc, error) {
		var batch B
		var err error
		v, batch, err = fn(ctx)
		return &v, func(ctx context.Context, change store.Change, hold bool) (store.SwapResult, store.Verdict, error) {
			ctx, cancel := context.WithTimeout(ctx, e.options.RecordTimeout) // limits the wait for a connection
			defer cancel()
			return batcher.AtomicBatch(ctx, change, hold, batch)
		}, err
	}
	out, err := e.runInline(ctx, c, nil, run)
	if err != nil {
		var none T
		return none, false, callerr.Seal(err)
	}
	if !out.Replayed {
		e.afterBatch(ctx, out, &v)
	}
	return firstResult(out, v)
}

// afterBatch checks whether the result was changed after it was stored, for example
// by a callback that scans a statement's result into it. The stored result is the
// outcome.
func (c *Core) afterBatch(ctx context.Context, out *Outcome, v any) {
	if !out.lossless || codec.IsTombstone(out.Record.Outcome) {
		return
	}
	now, err := codec.EncodeResult(codec.ResultOf(v))
	if out.lossless = err == nil && bytes.Equal(now.Outcome, out.Record.Outcome); !out.lossless {
		c.emit(ctx, event.Altered, out.Record, errChangedInBatch)
	}
}

var errChangedInBatch = errors.New("semel: the result was changed after DoBatch had stored it, for example by a callback of a statement")

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
			i.ran, i.answer = false, protocol.Wait
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
	return i.batch(&txContext{Context: i.attempt.trace(ctx), call: *i.call}) //nolint:contextcheck // a txContext inherits ctx
}

type (
	// sendFunc sends the statements with the record's change.
	sendFunc func(ctx context.Context, change store.Change, hold bool) (store.SwapResult, store.Verdict, error)
	// batchFunc returns the result and the function that sends the statements.
	batchFunc func(ctx context.Context) (any, sendFunc, error)
)
