package semelhttp

import (
	"context"
	"net/http"

	"github.com/semelgo/semel"
)

// exchange is one request whose response is captured. It is reused for later
// requests; memory that the handler can reach is in a separate part.
type exchange struct {
	s      *settings
	w      http.ResponseWriter
	r      *http.Request
	in     validRequest
	op     *semel.Operation[Request]
	get    getFunc
	known  *responseCache
	sealed bool // the response must wait for a COMMIT

	exposed *exposed
	before  http.Header   // response headers before the handler ran; nil: there were none
	handed  *http.Request // the request as the handler received it
	capture *capture      // nil: the handler was not run
	keeps   responseData  // the part of own to be stored
	kept    bool          // its response is stored as a failure

	// The lock of the run's capture guards the following fields until the run is
	// over.
	own       responseData // the handler's response, if it was run
	committed bool         // InTx has taken the response as the outcome
	undone    bool         // InTx has rolled back, and has not committed since

	text []byte   // the request's body, as long as the application has not seen it
	held []byte   // the response's body
	room snapshot // memory for its header

	fresh []string // values that no response has yet
}

// exposed is the part of an exchange to which the application has pointers. The
// application may keep them in a goroutine, so this part is never reused.
type exposed struct {
	room   [128]byte         // for a short request body
	input  Request           // input of the call
	waiter semel.WaitContext // the client's context
	first  run               // of the handler; most have no other run
}

// callContext returns the context of x's call. Waiting for another caller ends when
// the client hangs up; a running operation does not.
func (x *exchange) callContext() context.Context { return x.exposed.waiter.Of(x.r.Context()) }

// run is what one run of the handler receives.
type run struct {
	capture capture
	of      *exchange // nil after the handler has returned: a goroutine that it left behind changes nothing
	request http.Request
	body    rereadable
}

// onceFunc runs x's handler once for its call, and responds.
type onceFunc func(x *exchange, call semel.Call, next http.Handler)

// protect is the middleware around once.
func (s *settings) protect(e semel.Runner, op *semel.Operation[Request], sealed bool, once onceFunc) func(http.Handler) http.Handler {
	get, known := getterOf(e), newRepeats(e, s.FingerprintHeaders)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.ignores(r.Method) || s.unprotected(r, sealed) {
				next.ServeHTTP(w, r)
				return
			}
			x := s.exchanges.get()
			switch open := x.open(s, w, r, known); {
			case !open:
				x.release()
			case x.in.key == "" && !sealed:
				r = x.in.request(r)
				x.release()
				next.ServeHTTP(w, r)
			default:
				x.op, x.get, x.sealed, x.known = op, get, sealed, known
				x.serve(once, next)
			}
		})
	}
}

// serve makes x's call and responds. After a panic x is not reused, and the
// response is as if no handler had run.
func (x *exchange) serve(once onceFunc, next http.Handler) {
	over := false
	defer func() {
		if !over && x.capture != nil {
			x.restore()
		}
	}()
	requestOf(&x.exposed.input, x.r, x.in.body, x.s.FingerprintHeaders)
	once(x, x.op.CallAt(x.in.scope, x.in.keyOrRandom(), &x.exposed.input), next)
	over = true
	x.release()
}

// open validates r. It returns false if it has responded already: with a refusal,
// or from the cache.
func (x *exchange) open(s *settings, w http.ResponseWriter, r *http.Request, known *responseCache) bool {
	x.s, x.w, x.r = s, w, r
	if err := s.validate(w, r, true, x.text, known, &x.in); err != nil {
		s.refuse(w, r, err)
		return false
	}
	if s.KeyFunc == nil { // KeyFunc was given the body
		x.text = x.in.body
	}
	again := known.find(r, &x.in)
	if again == nil || s.Reauthorize != nil {
		x.exposed = new(exposed)
		x.in.body = append(x.exposed.room[:0], x.in.body...) // the application's functions need their own copy
	}
	if again == nil {
		return true
	}
	if err := s.reauthorize(r, &x.in); err != nil {
		s.refuse(w, r, err)
		return false
	}
	again.write(w, x.newValues(len(again.values)))
	return false
}

// newValues returns memory for n values of a header. The receiver of a response
// keeps them and may change them, so they are never reused: they are only allocated
// several at a time.
func (x *exchange) newValues(n int) []string {
	if n > len(x.fresh) {
		x.fresh = make([]string, max(n, freshValues))
	}
	values := x.fresh[:n:n]
	x.fresh = x.fresh[n:]
	return values
}

const freshValues = 32

// release ends the use of x.
func (x *exchange) release() {
	if x.capture != nil {
		x.capture.release()
	}
	x.s.exchanges.put(x)
}

// unprotected reports whether r runs as if there were no middleware.
func (s *settings) unprotected(r *http.Request, sealed bool) bool {
	return s.Optional && !sealed && s.KeyFunc == nil && len(r.Header[HeaderKey]) == 0
}

// run runs the handler, and returns what its response means for the engine: a
// result, or an error for its status.
func (x *exchange) run(ctx context.Context, next http.Handler) (any, error) {
	own := x.nextRun()
	c := &own.capture
	x.capture = c
	x.handed = x.requestForHandler(ctx, own)
	r, returned := x.handed, false
	defer func() {
		if !returned {
			x.end(own)
		}
		if r.MultipartForm != nil { // the server removes only the files of its own request
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	next.ServeHTTP(c, r)
	late := x.end(own)
	returned = true
	switch {
	case x.committed && late > 0:
		return nil, ErrResponseClosed // the engine informs its Observer
	case x.committed:
		return nil, nil // InTx has informed the engine
	case x.undone:
		return x.afterRollback()
	default:
		return x.outcome()
	}
}

// end closes the response of a handler that has returned, also for a transaction
// that the handler left behind. It returns the number of refused writes.
func (x *exchange) end(own *run) (late int) {
	c := &own.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	own.of, c.closed = nil, true
	c.over.Store(true)
	return int(c.refused)
}

// nextRun returns the memory for the next run of the handler. Memory of an earlier
// run stays with that run.
func (x *exchange) nextRun() *run {
	own := &x.exposed.first
	if x.capture != nil {
		x.capture.release()
		x.restore()
		own = new(run)
	} else if h := x.w.Header(); len(h) > 0 {
		x.before = h.Clone()
	}
	own.of, x.held = x, x.held[:0]
	c := &own.capture
	c.w, c.limit, c.sealed, c.streams = x.w, x.s.MaxResponse, x.sealed || !x.canStream(), x.s.streams
	c.body, c.room = &x.held, &x.room
	own.body.Reset(x.in.body)
	return own
}

// requestForHandler returns the request for the handler, which may change it.
// Another run, and code that reads the request afterwards, need the original; if
// there is neither, the request need not be copied.
func (x *exchange) requestForHandler(ctx context.Context, own *run) *http.Request {
	r := &own.request
	if x.needsOriginal() {
		r = x.r.Clone(ctx)
	} else {
		*r = *x.r.WithContext(ctx)
	}
	return setBody(r, &own.body)
}

// needsOriginal reports whether the original request is needed after the handler
// has received it: by another run, by a function of the application, or to tell
// endpoints apart.
func (x *exchange) needsOriginal() bool {
	return x.sealed || x.s.Reauthorize != nil || x.s.ErrorFunc != nil || x.s.endpoints
}

// canStream reports whether the client sees the end of a response whose length was
// not announced. In HTTP/1.0 the response ends with its connection, so a part of it
// would be taken for the whole.
func (x *exchange) canStream() bool { return x.r.ProtoAtLeast(1, 1) }

// outcome returns what the response says about the operation.
func (x *exchange) outcome() (any, error) {
	own, storable := x.capture.result()
	x.own = own
	switch c := x.class(); {
	case c == classError:
		return x.serverErrorOutcome(storable)
	case c == classTemporary:
		return nil, semel.NotCommitted(&StatusError{Status: own.status})
	case c == classRefused && x.sealed:
		return nil, semel.Final(x.failure(storable))
	default:
		return x.resultValue(storable), nil
	}
}

// serverErrorOutcome returns what a response from 500 up says about the operation:
// nothing, unless the profile takes it for an answer. A response that cannot be
// stored is no answer, because its tombstone would say that the operation
// succeeded.
func (x *exchange) serverErrorOutcome(storable bool) (any, error) {
	switch {
	case !x.s.broken:
		return nil, &StatusError{Status: x.own.status}
	case x.sealed || x.undone: // the rollback proves that nothing happened
		return nil, semel.Final(x.failure(storable))
	case x.whyNotStored(storable) == "":
		return x.resultValue(storable), nil
	default:
		return nil, &StatusError{Status: x.own.status}
	}
}

// whyNotStored returns why the response cannot be replayed, or an empty text.
func (x *exchange) whyNotStored(storable bool) string {
	switch {
	case !storable:
		return "the response was streamed or is larger than is kept"
	case noStore(x.own.header.lines("Cache-Control")) && !x.s.KeepNoStore:
		return "the response says no-store"
	default:
		return ""
	}
}

// resultValue returns the response as a result, or as a tombstone. A tombstone says
// that the operation succeeded, so for a refusal the status is stored instead.
func (x *exchange) resultValue(storable bool) any {
	why := x.whyNotStored(storable)
	switch {
	case why == "":
		return x.storedForm(x.own)
	case x.class() == classRefused:
		return x.storedForm(x.s.response(refusalOf(x.own.status)))
	default:
		return semel.Tombstone(why)
	}
}

// storedForm returns a as it is stored.
func (x *exchange) storedForm(a responseData) semel.RawAppender {
	x.keeps = a
	return x
}

// AppendRaw appends the stored form, with the headers that are kept.
func (x *exchange) AppendRaw(b []byte) []byte {
	var few [4]field
	a := x.keeps
	a.header = x.s.keep.of(few[:0], a.header)
	return a.append(b, x.endpoint())
}
