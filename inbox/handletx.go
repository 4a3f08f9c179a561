package inbox

import (
	"context"
	"fmt"

	"github.com/semelgo/semel"
)

// HandleTx handles m once with fn, in a transaction that commits the effect of
// fn together with the record of m, and returns the decision about the
// delivery. Each message has one effect, whatever crashes. It is for the modes
// [Pessimistic] and [Optimistic], and for [Leased] with the policy
// semel.Atomic.
//
// fn must not end tx, and all its writes must be in tx. An error of fn rolls
// the writes back and is counted in the same transaction: the message is to be
// redelivered, and after Retry.MaxErrors errors it is poison. If the database
// aborts the transaction because of a conflict, the transaction is run again,
// including fn.
//
// A panic of fn is counted like an error, and then continues.
func HandleTx[In, Tx any](ctx context.Context, in *Inbox[In], e *semel.Engine[Tx], m Message[In], fn func(ctx context.Context, tx Tx, payload In) error) Result {
	_, r := ReplyTx(ctx, in, e, m, func(ctx context.Context, tx Tx, payload In) (noReply, error) {
		return noReply{}, fn(ctx, tx, payload)
	})
	return withoutReply(r)
}

// ReplyTx is [HandleTx] for a handler with a reply that the consumer sends
// before it acknowledges the delivery. The rules of [Reply] apply.
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
		panic(died.value) //nolint:forbidigo // the handler's own panic continues after it was counted
	}
	return v, decide(c, replayed, err)
}

// panicError is the error that counts for a handler's panic.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
