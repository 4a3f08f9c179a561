package semelhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// middleware protects handlers with one operation.
type middleware struct {
	*settings
	engine semel.Runner
	op     *semel.Operation[Request]
	// atomic means that the handler runs in a transaction, so that its response must
	// wait for the COMMIT.
	atomic bool
	cache  *responseCache // nil: none
	// serve runs the handler of x once for its call, and responds.
	serve func(x *exchange, call semel.Call)
}

// exchange is one request to a protected handler, and its response. Each request has
// its own, because goroutines that the handler leaves behind may keep parts of it.
type exchange struct {
	*middleware
	w       http.ResponseWriter
	r       *http.Request
	next    http.Handler
	in      checkedRequest
	input   Request           // of the call
	waiting semel.WaitContext // ends when the client hangs up; a running operation does not

	before http.Header // response headers before the handler ran; nil: there were none
	run    *run        // the current run of the handler; nil: it was not run
	stored bool        // the response is stored as a failure
	replay semel.Raw   // the stored response, if it is not the handler's

	// The lock of the run's capture guards the following fields until the run is
	// over.
	own       Response // the handler's response, if it was run
	committed bool     // InTx has taken the response as the outcome
	undone    bool     // InTx has rolled back, and has not committed since
}

// wrap returns next behind m: validate, claim and run once, respond.
func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unkeyed := m.Optional && !m.atomic && m.KeyFunc == nil && len(r.Header[HeaderKey]) == 0
		if unkeyed || m.ignores(r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		in, err := m.validate(w, r, true)
		switch {
		case err != nil:
			m.refuse(w, r, err)
		case in.key == "" && !m.atomic:
			next.ServeHTTP(w, in.request(r))
		default:
			x := &exchange{middleware: m, w: w, r: r, next: next, in: in}
			x.input = requestOf(r, in.body, m.FingerprintHeaders)
			if m.cache != nil && m.cache.send(x) { //nolint:contextcheck // x has the request's context
				return
			}
			panicked := true
			defer func() {
				if panicked && x.run != nil { // the response is as if no handler had run
					x.restore()
				}
			}()
			m.serve(x, m.op.CallAt(in.scope, in.keyOrRandom(), &x.input))
			panicked = false
		}
	})
}

// respond sends the result of the engine's call: the handler's own response if the
// record has it, the stored response, or a problem.
func (x *exchange) respond(own, replayed bool, err error) {
	if rerr := x.reauthorize(x.r, &x.in, replayed, err); rerr != nil {
		x.withdraw()
		x.settings.refuse(x.w, x.r, rerr)
		return
	}
	switch {
	case err != nil && !x.isOwnAnswer(err):
		x.refuse(err)
	case err != nil || own:
		x.send()
	default:
		if !x.sendStored(x.replay, replayed) {
			x.refuse(errors.Join(semel.ErrResultUnavailable, errNotResponse))
		}
	}
}

// isOwnAnswer reports whether the handler's own response is right although err is
// not nil: the response is the stored failure, or it is a temporary refusal or a
// server error and nothing happened.
func (x *exchange) isOwnAnswer(err error) bool {
	if _, ok := storedFailure(err); ok {
		return x.stored && !semel.Replayed(err)
	}
	if x.own.Status == 0 || semel.VerdictOf(err) != store.NotCommitted {
		return false
	}
	c := x.class()
	return c == classTemporary || c == classError
}

// refuse sends err's problem, or the stored failure.
func (x *exchange) refuse(err error) {
	if x.run != nil && x.class() == classError && x.run.capture.gone() {
		return
	}
	failure, ok := storedFailure(err)
	if !ok {
		x.withdraw()
		x.settings.refuse(x.w, x.r, x.unread(x.otherEndpoint(err)))
		return
	}
	if x.sendStored(detailsOf(failure).Response, semel.Replayed(err)) {
		return
	}
	x.withdraw()
	markReplayed(x.w, semel.Replayed(err))
	p := refusal(failure)
	if status := statusIn(failure); status != 0 {
		p.Status = status
	}
	x.sendProblem(x.w, p)
}

// withdraw removes what the handler has set. If the client has received a part of a
// response that is not the outcome, withdraw closes the connection, so that the
// part is not taken for the response.
func (x *exchange) withdraw() {
	if x.run == nil {
		return
	}
	if x.run.capture.passing {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to break off a response
	}
	x.restore()
}

// restore sets the response's headers to their values before the handler ran.
func (x *exchange) restore() {
	replaceHeader(x.w.Header(), x.before.Clone())
}

// endpoint returns where the request was sent, in profiles that distinguish a key
// used at another endpoint from one used with other parameters.
func (x *exchange) endpoint() string {
	if !x.endpoints {
		return ""
	}
	path, _ := target(x.r)
	return x.r.Method + " " + path
}

// otherEndpoint says, for a key that was used for another request, whether that was
// at another endpoint. This is known only if that request has a stored response;
// every other error is returned unchanged.
func (x *exchange) otherEndpoint(err error) error {
	engine, ok := x.engine.(interface {
		Get(ctx context.Context, operation string, scope semel.Scope, key string) (store.Record, bool, error)
	})
	if !ok || !x.endpoints || !errors.Is(err, semel.ErrMismatch) {
		return err
	}
	record, found, gerr := engine.Get(x.r.Context(), x.op.Name(), x.in.scope, x.in.key)
	if gerr != nil || !found {
		return err
	}
	stored, perr := ParseResponse(responseIn(&semel.Outcome{Record: record}))
	if perr != nil || stored.endpoint == "" || stored.endpoint == x.endpoint() {
		return err
	}
	p := problem(codeKeyReused, "")
	p.Field = fieldEndpoint
	return p
}

// responseIn returns the response that is stored in an outcome, or nil.
func responseIn(out *semel.Outcome) semel.Raw {
	var raw semel.Raw
	if failure := out.Failure(); failure != nil {
		return detailsOf(failure).Response
	}
	if out.Decode(&raw) != nil {
		return nil
	}
	return raw
}
