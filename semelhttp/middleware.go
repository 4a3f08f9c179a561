package semelhttp

import (
	"net/http"

	"github.com/semelgo/semel"
)

// Middleware returns middleware that claims the key, commits the claim, and
// then runs the handler, wherever its effect is. What becomes of the key when
// the process dies is the policy of op.
//
// A handler whose effect is in the engine's own database runs semel.InTx, under
// a policy of semel.Atomic: what it has written when the function given to InTx
// returns is the outcome, and commits with it. The response, status included,
// is therefore written inside that function; a function that wrote nothing
// fails. Writes after it are refused with [ErrResponseClosed] and observed as
// semel.EventAfterOutcome. When the transaction is rolled back, what was
// written is dropped, and the handler answers anew. When the database gave it up
// in favour of others, InTx runs its function again, which can read the request's
// body again from its beginning.
//
// Without InTx the response is the outcome when the handler returns:
//   - below 400, and 4xx but for the following: stored, and replayed;
//   - 401, 403, 408, 413, 415, 423, 425, 429: not stored, nothing happened, the
//     same key may try again;
//   - from 500 up: it is not known how far the handler got, and the client is told
//     so (503 outcome_unknown), unless op's Classify knows better or, under
//     semel.Atomic, a transaction of InTx was rolled back; see [StatusError]. In the
//     [Stripe] profile it is stored and replayed instead.
//
// Under semel.Atomic a status below 400 without InTx is an error of the program: the
// client gets 503 outcome_unknown, and the record is InDoubt.
//
// The second line takes a status for proof. A handler that charges a customer and then
// passes on another service's 429 breaks that: the next try charges again. Such a handler
// sets Options.StatusVerdict, or answers with another status.
//
// The response is sent when its outcome is stored. One that is flushed is held back as
// well, unless it is a stream; see Options.StreamTypes. A stream that is flushed, a
// hijacked connection, and a response of more than MaxResponse are let through: the client
// gets everything, complete only if the outcome is stored, and retries are told that it
// cannot be given again. In HTTP/1.0, where a client cannot tell a part from the
// whole, flushing does nothing, hijacking is refused, and all of a response is
// held in memory until its outcome stands. The handler's context does not end
// when the client hangs up; it ends with semel.ErrLeaseLost.
//
// Where semel.Options.CacheBytes lets e answer from its memory, the middleware
// remembers up to 1,024 answers besides, of 16 KiB with their requests at most,
// so that the same bytes that come again cost next to nothing. They are told for
// as long as e says that they stand.
//
// GET, HEAD, OPTIONS and TRACE, and DELETE in the [Stripe] profile, go to the handler
// untouched. Put it around the
// handler of a route, inside routing, authentication and validation. What holds
// the response back, as http.TimeoutHandler does, belongs outside of it: within
// it semel.InTx would find nothing written.
func Middleware(e semel.Runner, op *semel.Operation[Request], o Options) (func(http.Handler) http.Handler, error) {
	if e == nil {
		return nil, &semel.FieldError{Field: "engine", Reason: "is nil"}
	}
	s, err := o.settleFor(op)
	if err != nil {
		return nil, err
	}
	return s.protect(e, op, false, func(x *exchange, call semel.Call, next http.Handler) {
		a, out, err := semel.Begin(x.untilRun(), e, call)
		own := false
		if a != nil {
			out, own, err = x.attempt(a, next)
		}
		if err != nil {
			x.answer(false, nil, false, err)
			return
		}
		if own {
			x.answer(true, nil, false, nil)
			return
		}
		v, err := resultOf(out)
		x.answer(false, v, out.Replayed, err)
		if err == nil && out.Replayed && x.capture == nil { // a handler may have changed its request
			x.known.keep(x, out, v)
		}
	}), nil
}

// attempt runs the handler as one attempt. Own says that what stands is what
// the handler wrote, and not what others or the domain say.
func (x *exchange) attempt(a *semel.Attempt, next http.Handler) (out *semel.Outcome, own bool, err error) {
	defer a.Abandon()
	a.AdaptWith(&x.exposed.first)
	v, herr := x.run(a.Context(), next)
	out, err = a.EndQuiet(v, herr)
	return out, out == nil && err == nil, err
}

// resultOf returns the response that is stored.
func resultOf(out *semel.Outcome) (semel.Raw, error) {
	var raw semel.Raw
	err := out.Decode(&raw)
	return raw, err
}
