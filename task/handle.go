package task

import (
	"context"
	"time"

	"github.com/semelgo/semel"
)

// HandlerOptions say how one kind of task is run. The zero value is good.
type HandlerOptions struct {
	// Concurrency is how many of the kind run at a time in this worker. Zero, or
	// more than the worker has: its Slots.
	Concurrency int
	// Timeout is when the context of a function ends, counted from its start. What
	// it returns then counts as it is: as an error, when it is one. Zero: none.
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

// Handle gives w the function that runs the tasks of op, for an effect that is
// outside of the record's database. It is given what was enqueued, and what it
// returns is the result that everybody who asks for the key gets.
//
// An error is Unknown unless it is marked [semel.NotCommitted] or [semel.Final], or
// op classifies it; what it then leads to say op's Policy and Retry. So do a panic
// and the end of the goroutine: the worker goes on, and the Observer is told. Input
// that cannot be read is an error of the attempt, and the function is not run.
//
// It runs on a goroutine that other functions run on after it: if it locks that to its
// thread, or labels it for profiles, it undoes that before it returns.
//
// Under Atomic the function itself calls [semel.InTx], once it has gathered what it
// needs: the effect must be in that transaction. A function that returns success without
// having called it leaves the task in doubt.
//
// op must have Retry and be among the engine's Operations; otherwise, and when w
// has a function for it already, the error is a *semel.FieldError.
func Handle[In, T, Tx any](w *Worker[Tx], op *semel.Operation[In],
	fn func(ctx context.Context, in In) (T, error), o HandlerOptions,
) error {
	if fn == nil {
		return invalid("fn", "is nil")
	}
	return w.untyped.addHandler(op, op.Name(), o, false, func(ctx context.Context, a *semel.Attempt) (any, error) {
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

// HandleTx is [Handle] for an effect in the record's own database: fn is run in the
// transaction that also commits the outcome. After an error or a panic it is rolled
// back, and so it is when somebody has taken the task over meanwhile. Its rules are
// those of [semel.InTx]. The policy of op must be Atomic.
func HandleTx[In, T, Tx any](w *Worker[Tx], op *semel.Operation[In],
	fn func(ctx context.Context, tx Tx, in In) (T, error), o HandlerOptions,
) error {
	if fn == nil {
		return invalid("fn", "is nil")
	}
	return w.untyped.addHandler(op, op.Name(), o, true, func(ctx context.Context, a *semel.Attempt) (any, error) {
		in, err := op.Input(a)
		if err != nil {
			return nil, semel.NotCommitted(err)
		}
		_, err = semel.InTx(ctx, w.engine, func(ctx context.Context, tx Tx) (T, error) { return fn(ctx, tx, in) })
		return nil, err
	})
}
