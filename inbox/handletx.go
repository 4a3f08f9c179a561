package inbox

import (
	"context"
	"fmt"

	"github.com/semelgo/semel"
)

// HandleTx handles m once, with fn, in a transaction that commits fn's effect and
// the record of m together, and says what is to be done with the delivery: one
// effect for each message, whatever crashes. The inbox's mode is [Pessimistic] or
// [Optimistic], or [Leased] with the policy semel.Atomic.
//
// fn must not end tx, and its writes must all be in tx. An error of fn rolls them
// back, and is counted in the same transaction: the message comes again, and after
// Retry.MaxErrors of them it is poison. A transaction that the database gives up in
// favour of others is run again, fn included.
//
// A panic of fn is counted as an error is, and goes on.
func HandleTx[In, Tx any](ctx context.Context, in *Inbox[In], e *semel.Engine[Tx], m Message[In], fn func(ctx context.Context, tx Tx, payload In) error) Result {
	_, r := ReplyTx(ctx, in, e, m, func(ctx context.Context, tx Tx, payload In) (noReply, error) {
		return noReply{}, fn(ctx, tx, payload)
	})
	return withoutReply(r)
}

// ReplyTx is [HandleTx] with an answer that is to be sent on before the delivery is
// acknowledged, as [Reply] is to [Handle].
func ReplyTx[In, T, Tx any](ctx context.Context, in *Inbox[In], e *semel.Engine[Tx], m Message[In], fn func(ctx context.Context, tx Tx, payload In) (T, error)) (T, Result) {
	var v T
	c, err := in.Call(m)
	if err != nil {
		return v, Result{Decision: Reject, Err: err}
	}
	var died *panicError
	v, replayed, err := semel.DoTx(ctx, e, c, func(ctx context.Context, tx Tx) (v T, err error) {
		died = nil
		defer func() {
			if p := recover(); p != nil {
				died = &panicError{p}
				err = died
			}
		}()
		return fn(ctx, tx, m.Payload)
	})
	if died != nil {
		panic(died.value) //nolint:forbidigo // the handler's own goes on, now that it is counted
	}
	return v, decide(c, replayed, err)
}

// panicError is what a panic of a handler is counted as.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
