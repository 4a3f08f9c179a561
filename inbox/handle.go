package inbox

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
)

// Handle handles m once with fn, wherever the effect of fn is, and returns the
// decision about the delivery. It is for the mode [Leased] with any policy but
// Atomic.
//
// The claim commits before fn runs. The verdict of an error is Unknown, unless
// the error is marked with semel.NotCommitted or semel.Final or the inbox's
// Classify recognizes it. The Policy of the inbox decides what is promised in
// that case. Within fn, semel.AttemptOf returns the attempt with its fencing
// token, and semel.ChildKey returns keys for downstream calls.
//
// A panic of fn continues after the record has been written.
func Handle[In any](ctx context.Context, in *Inbox[In], e semel.Runner, m Message[In], fn func(ctx context.Context, payload In) error) Result {
	_, r := Reply(ctx, in, e, m, func(ctx context.Context, payload In) (noReply, error) {
		return noReply{}, fn(ctx, payload)
	})
	return withoutReply(r)
}

// withoutReply clears the result of a handler without a reply. It does not
// matter that such a reply cannot be replayed.
func withoutReply(r Result) Result {
	if r.Duplicate && errors.Is(r.Err, semel.ErrResultUnavailable) {
		r.Decision, r.Err = Ack, nil
	}
	return r
}

// Reply is [Handle] for a handler with a reply that the consumer sends before
// it acknowledges the delivery. The reply is stored with the record, and every
// duplicate gets the same reply. A reply that cannot be stored, because it is
// too large for the store, is returned once only; duplicates are rejected with
// semel.ErrResultUnavailable.
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

// noReply is the reply of a handler without one.
type noReply struct{}
