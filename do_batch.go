package semel

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	"github.com/semelgo/semel/store"
)

// DoBatch is [DoTx] for a function that hands over its statements all together,
// instead of running them one by one: the record, the statements and the commit go
// to the database in one round trip, and nothing of them is in force unless all is.
// B is how the store's driver knows a batch, such as *pgx.Batch; a store that takes
// none, or another kind, is ErrInvalid.
//
// fn says the result before anything is sent, so a result that the database makes up
// is not for DoBatch. It must do nothing but build the statements and the result,
// each time anew: it is called before it is known that the key is new, and again
// after every transaction that others were in the way of. An error of fn is proof
// that nothing was done; so is an error of a statement, which rolls everything back.
// What both lead to is the operation's OnError, [Final] or its Retry, as with DoTx.
//
// Like DoTx, it must not be called within another transaction of the connection pool, and
// waits for a connection for Options.RecordTimeout at most.
//
// Statements must not end the transaction. Once they are sent they are waited for,
// within a bound of the store's, whatever becomes of ctx. The operation's policy is
// unset or [Atomic] without a Lease, and it has no Generation; any other is
// ErrInvalid.
func DoBatch[T, B, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context) (T, B, error)) (v T, replayed bool, err error) {
	if err := c.valid(); err != nil {
		return v, false, seal(err)
	}
	switch {
	case !c.op.inline():
		return v, false, seal(invalid("Policy", "must be Atomic without a Lease or unset for DoBatch: all of it is one transaction"))
	case c.op.generation > 0:
		return v, false, seal(invalid("Generation", "is for DoTx: a batch writes one record"))
	}
	batcher, ok := e.store.(store.Batcher[B])
	if !ok {
		return v, false, seal(invalid("fn", "returns statements of a kind that this store does not take"))
	}
	run := func(ctx context.Context) (any, sendFunc, error) {
		var batch B
		var err error
		v, batch, err = fn(ctx)
		return valueRef[T]{&v}, func(ctx context.Context, change store.Change, hold bool) (store.SwapResult, store.Verdict, error) {
			ctx, wait := withTimeout(ctx, e.options.RecordTimeout) // for a connection
			defer wait.end()
			return batcher.AtomicBatch(ctx, change, hold, batch)
		}, err
	}
	out, err := e.runBatch(ctx, c, run)
	if err != nil {
		var none T
		return none, false, seal(err)
	}
	if !out.Replayed {
		e.afterBatch(ctx, out, valueRef[T]{&v})
	}
	return firstResult(out, v)
}

// afterBatch finds out whether a result has been changed since it was stored, as by a
// callback that scans what a statement returned into it. The stored result counts.
func (c *Core) afterBatch(ctx context.Context, out *Outcome, v any) {
	if !out.lossless || !mayChange(resultOf(v)) {
		return
	}
	now, err := encodeResult(resultOf(v))
	if out.lossless = err == nil && bytes.Equal(now.outcome, out.Record.Outcome); !out.lossless {
		c.emit(ctx, EventAltered, out.Record, errChangedInBatch)
	}
}

var errChangedInBatch = errors.New("semel: the result was changed after DoBatch had stored it, as by a callback of a statement")

// mayChange reports whether a result can be changed through memory that it shares.
func mayChange(v any) bool {
	f := jsonFormOf(reflect.TypeOf(v))
	if f.elem != nil && f.typ.Kind() == reflect.Pointer {
		f = f.elem
	}
	return f.indirect
}

type (
	// sendFunc sends statements that were handed over, with the record's change.
	sendFunc func(ctx context.Context, change store.Change, hold bool) (store.SwapResult, store.Verdict, error)
	// batchFunc builds them, and says the result.
	batchFunc func(ctx context.Context) (any, sendFunc, error)
)
