package inbox

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
)

// Handle handles m once, with fn, wherever its effect is, and says what is to be
// done with the delivery. The inbox's mode is [Leased], with any policy but Atomic.
//
// The claim is committed before fn runs. An error of fn says nothing about the
// effect, unless it is marked semel.NotCommitted or semel.Final, or the inbox
// classifies it. What is then promised is in the name of the inbox's Policy. fn
// finds its attempt, with the fencing token, by semel.AttemptOf, and keys for its
// own calls by semel.ChildKey.
//
// A panic of fn goes on after the record is left in the state that is true.
func Handle[In any](ctx context.Context, in *Inbox[In], e semel.Runner, m Message[In], fn func(ctx context.Context, payload In) error) Result {
	_, r := Reply(ctx, in, e, m, func(ctx context.Context, payload In) (noReply, error) {
		return noReply{}, fn(ctx, payload)
	})
	return withoutReply(r)
}

// withoutReply is the result of a handler without an answer: that it cannot be given
// again is no matter.
func withoutReply(r Result) Result {
	if r.Duplicate && errors.Is(r.Err, semel.ErrResultUnavailable) {
		r.Decision, r.Err = Ack, nil
	}
	return r
}

// Reply is [Handle] with an answer that is to be sent on before the delivery is
// acknowledged. It is kept with the record: a duplicate gets the same. An answer
// that cannot be kept, because it is too large for the store, comes once; its
// duplicates are rejected with semel.ErrResultUnavailable.
func Reply[In, T any](ctx context.Context, in *Inbox[In], e semel.Runner, m Message[In], fn func(ctx context.Context, payload In) (T, error)) (T, Result) {
	var v T
	c, err := in.Call(m)
	switch {
	case err != nil:
		return v, Result{Decision: Reject, Err: err}
	case in.mode != Leased:
		return v, decide(c, false, invalid("Mode", "must be Leased for Handle"))
	case in.inTx:
		return v, decide(c, false, invalid("Policy", "is Atomic, which is for HandleTx"))
	}
	v, replayed, err := semel.Do(ctx, e, c, func(ctx context.Context) (T, error) { return fn(ctx, m.Payload) })
	return v, decide(c, replayed, err)
}

// noReply is the answer of a handler that has none.
type noReply struct{}
