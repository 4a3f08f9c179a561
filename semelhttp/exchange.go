package semelhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// middleware protects handlers with one operation.
type middleware struct {
	*settings
	engine semel.Runner
	op     string         // name of the operation
	cache  *responseCache // nil: none
	call   func(x *exchange) semel.Call
	// serve runs the handler of x once, and responds.
	serve func(x *exchange)
}

// exchange is one request to a protected handler, and its response. Each request has
// its own, because goroutines that the handler leaves behind may keep parts of it.
type exchange struct {
	*middleware
	w     http.ResponseWriter
	r     *http.Request
	next  http.Handler
	in    checkedRequest
	input Request // of the call
	// endpoint is where the request was sent, in profiles that distinguish a key used at
	// another endpoint from one used with other parameters. Behind Form it is a digest of
	// the contents, because a token is used once for any contents.
	endpoint string
	waiting  adapter.WaitContext // ends when the client hangs up; a running operation does not

	run    *run      // the current run of the handler; nil: it was not run
	stored *Response // the stored response, if it is not the handler's
}

// newMiddleware returns middleware over e, without its cache and its serve.
func newMiddleware(e semel.Runner, op *semel.Operation[Request], o Options) (*middleware, error) {
	switch {
	case e == nil:
		return nil, &semel.FieldError{Field: "engine", Reason: "is nil"}
	case op == nil:
		return nil, &semel.FieldError{Field: "operation", Reason: "is nil"}
	}
	if err := adapter.CheckOperation(e, op); err != nil {
		return nil, err
	}
	s, err := o.settle()
	call := func(x *exchange) semel.Call { return op.CallAt(x.in.scope, x.in.key, &x.input) }
	return &middleware{settings: s, engine: e, op: op.Name(), call: call}, err
}

// wrap returns next behind m: validate, claim and run once, respond.
func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unkeyed := m.Optional && !m.atomic && m.KeyFunc == nil && len(r.Header[HeaderKey]) == 0
		if unkeyed || m.Profile.ignores(r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		in, err := m.validate(r)
		switch {
		case err != nil:
			m.refuse(w, r, err)
		case in.unkeyed && !m.atomic:
			next.ServeHTTP(w, in.request(r))
		default:
			x := &exchange{middleware: m, w: w, r: r, next: next, in: in}
			if !m.form {
				x.input = requestOf(r, in.body, m.FingerprintHeaders)
			} else if x.endpoint, err = sentContents(r, in.body); err != nil {
				m.refuse(w, r, err)
				return
			}
			if path, _ := target(r); m.Profile == Stripe {
				x.endpoint = r.Method + " " + path
			}
			m.serve(x)
		}
	})
}

// serveAtomic returns the function that runs the handler of x in a transaction of e.
func serveAtomic[Tx any](e *semel.Engine[Tx]) func(x *exchange) {
	return func(x *exchange) {
		v, replayed, err := semel.DoTx(x.waiting.Of(x.r.Context()), e, x.call(x), func(ctx context.Context, _ Tx) (any, error) {
			return x.newRun().handle(ctx, x.r, x.next)
		})
		if raw, ok := v.(semel.Raw); ok && replayed {
			x.stored, _ = ParseResponse(raw)
		}
		x.respond(!replayed, replayed, err)
	}
}

// serveLeased responds from the cache, or claims the key of x and runs its handler.
func serveLeased(x *exchange) {
	if x.cache != nil {
		if x.stored = x.cache.find(x.r.Context(), &x.in, &x.input); x.stored != nil {
			x.respond(false, true, nil)
			return
		}
	}
	a, out, err := adapter.Begin(x.waiting.Of(x.r.Context()), x.engine, x.call(x))
	if a != nil {
		out, err = x.attempt(a)
	}
	if err != nil || out == nil {
		x.respond(err == nil, false, err)
		return
	}
	var raw semel.Raw
	err = out.Decode(&raw)
	x.stored, _ = ParseResponse(raw)
	if x.cache != nil && x.stored != nil && out.Replayed && x.run == nil && len(x.in.body)+len(raw) <= maxCached {
		x.cache.put(&x.in, x.input, out, *x.stored)
	}
	x.respond(false, out.Replayed, err)
}

// attempt runs the handler as one attempt. A nil outcome means that the handler's
// response is the outcome, and not that of another attempt or of a probe.
func (x *exchange) attempt(a *semel.Attempt) (*adapter.Outcome, error) {
	defer a.Abandon()
	o := x.newRun()
	a.AdaptWith(o)
	v, err := o.handle(a.Context(), x.r, x.next)
	return a.EndQuiet(v, err)
}

// newRun begins a run of the handler.
func (x *exchange) newRun() *run {
	http10 := !x.r.ProtoAtLeast(1, 1)
	x.run = &run{capture: capture{
		settings: x.settings, w: x.w, own: Response{endpoint: x.endpoint}, http10: http10, sealed: x.atomic || http10,
	}}
	if h := x.w.Header(); len(h) > 0 {
		x.run.before = h.Clone()
	}
	x.run.body.Reset(x.in.body)
	return x.run
}

// respond sends the result of the engine's call: the handler's own response if the
// record has it, the stored response, or a problem.
func (x *exchange) respond(own, replayed bool, err error) {
	denied := x.reauthorize(x.r, &x.in, replayed, err)
	switch {
	case denied != nil:
		x.fail(denied)
	case own && err == nil, err != nil && x.isOwnAnswer(err):
		if !x.run.passing {
			x.run.send(true)
		}
	case err != nil:
		x.refuse(err)
	case x.stored != nil && replayed && x.form && x.stored.endpoint != "" && x.stored.endpoint != x.endpoint:
		x.fail(problem(codeFormChanged, ""))
	case x.stored != nil:
		x.sendStored(x.stored, replayed)
	default:
		x.fail(errors.Join(semel.ErrResultUnavailable, errNotResponse))
	}
}

// isOwnAnswer reports whether the handler's own response is right although err is
// not nil: the response is the stored failure, or it is a temporary refusal or a
// server error and nothing happened.
func (x *exchange) isOwnAnswer(err error) bool {
	if x.run == nil {
		return false
	}
	if _, failed := errtype.Find[*semel.Failure](err); failed {
		return x.run.failed && !semel.Replayed(err)
	}
	return semel.VerdictOf(err) == store.NotCommitted && x.run.verdict() != store.Committed
}

// refuse sends err's problem, or the stored failure.
func (x *exchange) refuse(err error) {
	if x.run != nil && x.run.verdict() == store.Unknown && x.run.passing {
		return
	}
	failure, failed := errtype.Find[*semel.Failure](err)
	if !failed {
		x.fail(noFingerprintProblem(x.otherEndpoint(err)))
		return
	}
	if stored := responseOf(failure); stored != nil {
		x.sendStored(stored, semel.Replayed(err))
		return
	}
	x.withdraw()
	markReplayed(x.w, semel.Replayed(err))
	x.sendProblem(x.w, refusal(failure))
}

// noFingerprintProblem returns the problem of a request whose fingerprint could not be
// computed, and err for other errors. Only the body can be the cause, because the other
// parts of a [Request] can always be compared.
func noFingerprintProblem(err error) error {
	if field, ok := errtype.Find[*semel.FieldError](err); ok && field.Field == "Input" && problemIn(err) == nil {
		return problem(codeBodyInvalid, "")
	}
	return err
}

// fail sends err's problem instead of what the handler has written.
func (x *exchange) fail(err error) {
	x.withdraw()
	x.settings.refuse(x.w, x.r, err)
}

// withdraw closes the connection if the client has received a part of a response that is
// not the outcome, so that the part is not taken for the response.
func (x *exchange) withdraw() {
	if x.run != nil && x.run.passing {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to break off a response
	}
}

// sendStored sends a stored response. If a probe of this attempt has found it, it is
// no replay.
func (x *exchange) sendStored(stored *Response, replayed bool) {
	x.withdraw()
	h := x.w.Header()
	for name, values := range stored.Header {
		h[name] = slices.Clone(values) // the cache keeps its own
	}
	markReplayed(x.w, replayed)
	setLength(h, stored.Status, stored.Body, false)
	x.w.WriteHeader(stored.Status)
	_, _ = x.w.Write(stored.Body) // a client that hung up retries
}

// otherEndpoint says, for a key that was used for another request, whether that was
// at another endpoint. This is known only if that request has a stored response;
// every other error is returned unchanged.
func (x *exchange) otherEndpoint(err error) error {
	if x.Profile != Stripe || !errors.Is(err, semel.ErrMismatch) {
		return err
	}
	record, _, gerr := admin.Get(x.r.Context(), x.engine, x.op, x.in.scope, x.in.key)
	stored := storedIn(&adapter.Outcome{Record: record})
	if gerr != nil || stored == nil || stored.endpoint == "" || stored.endpoint == x.endpoint {
		return err
	}
	return problemOn(fieldEndpoint, codeKeyReused, "")
}

// storedIn returns the response that is stored in an outcome, or nil.
func storedIn(out *adapter.Outcome) *Response {
	if failure := out.Failure(); failure != nil {
		return responseOf(failure)
	}
	var raw semel.Raw
	_ = out.Decode(&raw) // raw stays nil
	stored, _ := ParseResponse(raw)
	return stored
}
