package task

import (
	"context"
	"time"

	"github.com/semelgo/semel"
)

// HandlerOptions configure how the tasks of one operation are run. The zero
// value is valid.
type HandlerOptions struct {
	// Concurrency is the maximum number of the operation's tasks that run at a
	// time in this worker. Zero, or a number above Options.Slots, means
	// Options.Slots.
	Concurrency int
	// Timeout limits the run of a function: its context ends this long after
	// the start. The function's return value then counts as usual; an error is
	// an error of the attempt. Zero means no limit.
	Timeout time.Duration
}

func (o *HandlerOptions) valid() error {
	switch {
	case o.Concurrency < 0:
		return invalid("Concurrency", "is negative")
	case o.Timeout < 0:
		return invalid("Timeout", "is negative: "+o.Timeout.String())
	}
	return nil
}

// Handle registers fn as the function that runs the tasks of op, for an effect
// outside the record's database. fn receives the enqueued input. Its result is
// stored, and every caller of the key receives it.
//
// The verdict of an error is Unknown unless the error is marked with
// [semel.NotCommitted] or [semel.Final], or op's Classify recognizes it. The
// Policy and the Retry of op decide what follows. A panic or runtime.Goexit
// counts in the same way: the worker continues, and the Observer receives an
// event. If the input cannot be decoded, that is an error of the attempt and fn
// is not run.
//
// fn runs on a goroutine that later runs other functions. If fn locks it to its
// thread or sets profiler labels, it must undo that before it returns.
//
// Under the policy Atomic, fn itself calls [semel.InTx] after it has gathered
// its data. The effect must be in that transaction. If fn returns success
// without a call of InTx, the task becomes InDoubt.
//
// op must have Retry and must be one of the engine's Operations. Otherwise, or
// if w already has a function for op, the error is a *semel.FieldError.
func Handle[In, T any](w *Worker, op *semel.Operation[In],
	fn func(ctx context.Context, in In) (T, error), o HandlerOptions,
) error {
	if fn == nil {
		return invalid("fn", "is nil")
	}
	return w.addHandler(op, op.Name(), o, false, func(ctx context.Context, a *semel.Attempt) (any, error) {
		in, err := op.Input(a)
		if err != nil {
			return nil, semel.NotCommitted(err)
		}
		v, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return encodeResult(v), nil
	})
}

// HandleTx is [Handle] for an effect in the record's own database: fn runs in
// the transaction that also commits the outcome. The transaction is rolled back
// after an error or a panic, and if another process has taken over the task in
// the meantime. The rules of [semel.InTx] apply. The policy of op must be
// Atomic. e must be the engine of w.
func HandleTx[In, T, Tx any](w *Worker, e *semel.Engine[Tx], op *semel.Operation[In],
	fn func(ctx context.Context, tx Tx, in In) (T, error), o HandlerOptions,
) error {
	if fn == nil {
		return invalid("fn", "is nil")
	}
	if e == nil || semel.Runner(e) != w.engine {
		return invalid("engine", "is not the engine of the worker")
	}
	return w.addHandler(op, op.Name(), o, true, func(ctx context.Context, a *semel.Attempt) (any, error) {
		in, err := op.Input(a)
		if err != nil {
			return nil, semel.NotCommitted(err)
		}
		_, err = semel.InTx(ctx, e, func(ctx context.Context, tx Tx) (T, error) { return fn(ctx, tx, in) })
		return nil, err
	})
}
