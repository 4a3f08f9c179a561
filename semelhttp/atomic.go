package semelhttp

import (
	"net/http"

	"github.com/semelgo/semel"
)

// Atomic returns middleware that runs each request in a transaction of e, which the
// handler gets by semel.TxOf. The handler's response is captured, stored in the same
// transaction, and sent after the COMMIT: effect and response exist together or not
// at all. It is the first choice for short handlers.
//
// The status of the response decides:
//   - below 400: committed, and replayed from then on;
//   - 401, 403, 408, 413, 415, 423, 425, 429: rolled back and not stored, the same
//     key may be retried;
//   - other 4xx: the handler's writes are rolled back and the refusal is stored: the
//     key has failed for good and retries get the same bytes;
//   - from 500 up, and panics: rolled back and not stored; in the [Stripe] profile a
//     response from 500 up is stored as other 4xx are.
//
// If the database aborts the transaction because of a conflict, the handler's response
// is dropped and the handler runs again, with the same request.
//
// The handler's context does not end when the client hangs up. The whole response is
// held in memory until the COMMIT: flushing before it does nothing, and the connection
// cannot be hijacked. GET, HEAD, OPTIONS and TRACE go to the handler untouched, and find no
// transaction.
//
// Put it around the handler of a route, inside routing, authentication and validation:
// a request that these refuse then uses no key. An http.TimeoutHandler belongs outside
// of it, too.
func Atomic[Tx any](e *semel.Engine[Tx], op *semel.Operation[Request], o Options) (func(http.Handler) http.Handler, error) {
	if e == nil {
		return nil, &semel.FieldError{Field: "engine", Reason: "is nil"}
	}
	m, err := newMiddleware(e, op, o)
	if err != nil {
		return nil, err
	}
	m.atomic, m.serve = true, serveAtomic(e)
	return m.wrap, nil
}
