package semelhttp

import (
	"hash/maphash"
	"net/http"

	"github.com/semelgo/semel"
)

// Middleware returns middleware that claims the key, commits the claim, and then runs
// the handler, whose effect may be anywhere. The policy of op decides what happens to
// the key if the process dies.
//
// A handler whose effect is in the engine's own database calls semel.InTx, under policy
// semel.Atomic: what it has written when the function of InTx returns is the outcome,
// and commits with it. The response, including the status, is therefore written inside
// that function; a function that wrote nothing fails. Later writes are refused with
// [ErrResponseClosed] and observed as event.AfterOutcome. If the transaction is
// rolled back, what was written is dropped, and the handler responds again. If the
// database aborted it because of a conflict, InTx runs its function again, which can
// read the request's body again from its beginning.
//
// Without InTx the response is the outcome when the handler returns:
//   - below 400, and 4xx except the following: stored, and replayed;
//   - 401, 403, 408, 413, 415, 423, 425, 429: not stored, nothing happened, the same
//     key may be retried;
//   - from 500 up: the effect is unknown, and the client is told so (503
//     outcome_unknown), unless op's Classify knows better or, under semel.Atomic, a
//     transaction of InTx was rolled back; see [StatusError]. In the [Stripe] profile
//     the response is stored and replayed instead.
//
// Under semel.Atomic a status below 400 without InTx is an error of the program: the
// client gets 503 outcome_unknown, and the record is InDoubt.
//
// The second line takes a status for proof. A handler that charges a customer and then
// returns another service's 429 breaks that: the next try charges again. Such a handler
// sets Options.StatusVerdict, or responds with another status.
//
// The response is sent after its outcome is stored. A flushed response is held back as
// well, unless it is a stream; see Options.StreamTypes. A flushed stream, and a response
// of more than MaxResponse, are sent at once: the client gets everything, complete only
// if the outcome is stored, and retries are told that it is not available again. In
// HTTP/1.0, where a client cannot distinguish a part from the whole, flushing does
// nothing, and the whole response is held in memory until its outcome is stored. The
// connection cannot be hijacked. The handler's context does not end when the client
// hangs up; it ends with semel.ErrLeaseLost.
//
// If semel.Options.CacheBytes lets e answer from memory, the middleware also caches up
// to 1,024 responses, each of at most 16 KiB together with its request, so that the same
// bytes cost very little. It sends a cached response only as long as e says that the
// outcome is valid.
//
// GET, HEAD, OPTIONS and TRACE, and DELETE in the [Stripe] profile, go to the handler
// untouched. Put it around the handler of a route, inside routing, authentication and
// validation. A handler that holds the response back, such as http.TimeoutHandler,
// belongs outside of it: inside, semel.InTx would find nothing written.
func Middleware(e semel.Runner, op *semel.Operation[Request], o Options) (func(http.Handler) http.Handler, error) {
	m, err := newMiddleware(e, op, o)
	if err != nil {
		return nil, err
	}
	m.cache = &responseCache{engine: e, seed: maphash.MakeSeed()}
	m.serve = serveLeased
	return m.wrap, nil
}
