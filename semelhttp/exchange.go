package semelhttp

import (
	"context"
	"net/http"

	"github.com/semelgo/semel"
)

// exchange is one request whose response is captured, on its way through. It is used
// for others after it; what the handler is given is in a piece of its own.
type exchange struct {
	s      *settings
	w      http.ResponseWriter
	r      *http.Request
	in     admitted
	op     *semel.Operation[Request]
	get    getFunc
	known  *repeats
	sealed bool // the response must wait for a COMMIT

	exposed *exposed
	before  http.Header   // what the response's headers were before the handler; nil: there were none
	handed  *http.Request // as the handler got it
	capture *capture      // nil: the handler was not run
	keeps   answered      // what is to be stored of own
	kept    bool          // its answer is to be kept as a failure

	// What follows is guarded by the lock of the run's capture until that is over.
	own       answered // what the handler has answered, when it was run
	committed bool     // InTx has taken the answer for the outcome
	undone    bool     // InTx has rolled back, and has not committed since

	text []byte   // the request's body, as long as the application has not seen it
	held []byte   // the response's body
	room snapshot // of its header

	fresh []string // that nobody has been given yet
}

// exposed is all of an exchange that others have pointers into. They may keep them, and
// leave a goroutine behind, so it is never used for another request.
type exposed struct {
	room  [128]byte         // for a request's body that is short
	input Request           // of the call
	asker semel.WaitContext // the client
	first run               // of the handler; most have no other
}

// untilRun returns the context for x's call. It waits for others no longer than the
// client does; once it runs the operation, a client that hangs up changes nothing.
func (x *exchange) untilRun() context.Context { return x.exposed.asker.Of(x.r.Context()) }

// run is what one run of the handler is given.
type run struct {
	capture capture
	of      *exchange // nil once the handler has returned: what it left behind changes nothing
	request http.Request
	body    rereadable
}

// onceFunc runs x's handler once for its call and answers.
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
				r = x.in.of(r)
				x.release()
				next.ServeHTTP(w, r)
			default:
				x.op, x.get, x.sealed, x.known = op, get, sealed, known
				x.through(once, next)
			}
		})
	}
}

// through has x's call made and answered. After a panic x is used by nobody else, and
// the response is as if there had been no handler.
func (x *exchange) through(once onceFunc, next http.Handler) {
	over := false
	defer func() {
		if !over && x.capture != nil {
			x.restore()
		}
	}()
	requestOf(&x.exposed.input, x.r, x.in.body, x.s.FingerprintHeaders)
	once(x, x.op.CallAt(x.in.scope, x.in.drawn(), &x.exposed.input), next)
	over = true
	x.release()
}

// open lets r in, unless it is done with: refused, or answered as it was a moment
// ago.
func (x *exchange) open(s *settings, w http.ResponseWriter, r *http.Request, known *repeats) bool {
	x.s, x.w, x.r = s, w, r
	if err := s.admit(w, r, true, x.text, known, &x.in); err != nil {
		s.refuse(w, r, err)
		return false
	}
	if s.KeyFunc == nil { // which was given what was read
		x.text = x.in.body
	}
	again := known.find(r, &x.in)
	if again == nil || s.Reauthorize != nil {
		x.exposed = new(exposed)
		x.in.body = append(x.exposed.room[:0], x.in.body...) // for the application's functions
	}
	if again == nil {
		return true
	}
	if err := s.reauthorize(r, &x.in); err != nil {
		s.refuse(w, r, err)
		return false
	}
	again.write(w, x.lend(len(again.values)))
	return false
}

// lend returns room for n values of a header. Who gets a response has them for good, and
// may write over them, so they are never taken back: only made several at a time.
func (x *exchange) lend(n int) []string {
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

// run lets next answer, and returns what its answer is for the engine: a
// result, or an error that says what the status says.
func (x *exchange) run(ctx context.Context, next http.Handler) (any, error) {
	own := x.nextRun()
	c := &own.capture
	x.capture = c
	x.handed = x.handOver(ctx, own)
	r, returned := x.handed, false
	defer func() {
		if !returned {
			x.end(own)
		}
		if r.MultipartForm != nil { // the server removes only those of its own request
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	next.ServeHTTP(c, r)
	late := x.end(own)
	returned = true
	switch {
	case x.committed && late > 0:
		return nil, ErrResponseClosed // the engine tells its Observer
	case x.committed:
		return nil, nil // InTx has told the engine
	case x.undone:
		return x.afterRollback()
	default:
		return x.outcome()
	}
}

// end closes the response of a handler that has returned: for good, also for a
// transaction that it has left behind. It returns how many writes were refused.
func (x *exchange) end(own *run) (late int) {
	c := &own.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	own.of, c.closed = nil, true
	c.over.Store(true)
	return int(c.refused)
}

// nextRun is what the next run of the handler is given. What an earlier one was
// given stays with it.
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
	c.w, c.limit, c.sealed, c.streams = x.w, x.s.MaxResponse, x.sealed || !x.chunks(), x.s.streams
	c.body, c.room = &x.held, &x.room
	own.body.Reset(x.in.body)
	return own
}

// handOver returns the request as the handler gets it: its own, to change as it
// likes. Another run begins with what came, and so does who looks at the request
// after it. Where there is neither, what the request points to need not be copied.
func (x *exchange) handOver(ctx context.Context, own *run) *http.Request {
	r := &own.request
	if x.looksAgain() {
		r = x.r.Clone(ctx)
	} else {
		*r = *x.r.WithContext(ctx)
	}
	return reading(r, &own.body)
}

// looksAgain reports whether what came is needed after the handler was given it: by
// another run, by a function of the application, or to tell endpoints apart.
func (x *exchange) looksAgain() bool {
	return x.sealed || x.s.Reauthorize != nil || x.s.ErrorFunc != nil || x.s.endpoints
}

// chunks reports whether the client knows the end of a response whose length was
// not announced. In HTTP/1.0 it ends where its connection does, so a part of it
// would be taken for the whole.
func (x *exchange) chunks() bool { return x.r.ProtoAtLeast(1, 1) }

// outcome is what the response says of the operation.
func (x *exchange) outcome() (any, error) {
	own, storable := x.capture.result()
	x.own = own
	switch c := x.class(); {
	case c == classBroken:
		return x.brokenOutcome(storable)
	case c == classPassing:
		return nil, semel.NotCommitted(&StatusError{Status: own.status})
	case c == classRefused && x.sealed:
		return nil, semel.Final(x.failure(storable))
	default:
		return x.stored(storable), nil
	}
}

// brokenOutcome is what a response from 500 up says of the operation: nothing,
// or, where the profile has it for an answer, what it is. One that cannot be
// given again is no answer: its tombstone would say that the operation
// succeeded.
func (x *exchange) brokenOutcome(storable bool) (any, error) {
	switch {
	case !x.s.broken:
		return nil, &StatusError{Status: x.own.status}
	case x.sealed || x.undone: // the rollback proves that nothing happened
		return nil, semel.Final(x.failure(storable))
	case x.notGiven(storable) == "":
		return x.stored(storable), nil
	default:
		return nil, &StatusError{Status: x.own.status}
	}
}

// notGiven says why the response cannot be given again, and nothing when it can.
func (x *exchange) notGiven(storable bool) string {
	switch {
	case !storable:
		return "the response was streamed or is larger than is kept"
	case noStore(x.own.header.lines("Cache-Control")) && !x.s.KeepNoStore:
		return "the response says no-store"
	default:
		return ""
	}
}

// stored is the response as a result, or why it cannot be one. A tombstone says
// that the operation succeeded, so of a refusal its status is stored instead.
func (x *exchange) stored(storable bool) any {
	why := x.notGiven(storable)
	switch {
	case why == "":
		return x.keepable(x.own)
	case x.class() == classRefused:
		return x.keepable(x.s.response(refusalOf(x.own.status)))
	default:
		return semel.Tombstone(why)
	}
}

// keepable is a as it is stored.
func (x *exchange) keepable(a answered) semel.RawAppender {
	x.keeps = a
	return x
}

// AppendRaw appends what is to be stored: with the headers that are kept.
func (x *exchange) AppendRaw(b []byte) []byte {
	var few [4]field
	a := x.keeps
	a.header = x.s.keep.of(few[:0], a.header)
	return a.append(b, x.endpoint())
}
