package semelhttp

import (
	"context"
	"net/http"
	"sync"

	"github.com/semelgo/semel"
)

// exchange is one request whose response is captured, on its way through.
//
// All that it needs is in one piece, and none of it is used for another request:
// the handler has pointers into it and may leave a goroutine behind. Only the buffer
// of what the handler wrote is used again, which it cannot reach.
type exchange struct {
	s      *settings
	w      http.ResponseWriter
	r      *http.Request
	in     admitted
	op     *semel.Operation[Request]
	get    getFunc
	known  *repeats
	sealed bool // the response must wait for a COMMIT

	handed  *http.Request // as the handler got it
	capture *capture      // nil: the handler was not run
	keeps   answered      // what is to be stored of own
	kept    bool          // its answer is to be kept as a failure

	mu        sync.Mutex // guards what follows, until over
	over      bool       // the handler has returned, and what it left behind changes nothing
	own       answered   // what it has answered, when it was run
	committed bool       // InTx has taken the answer for the outcome
	undone    bool       // InTx has rolled back, and has not committed since

	room   [256]byte      // for a body that is short
	asker  semel.Patience // the client
	first  run            // of the handler; most have no other
	length [1]string      // the value of a Content-Length
}

// untilRun returns the context for x's call. It waits for others no longer than the
// client does; once it runs the operation, a client that hangs up changes nothing.
func (x *exchange) untilRun() context.Context { return x.asker.Of(x.r.Context()) }

// run is what one run of the handler is given.
type run struct {
	capture capture
	request http.Request
	body    rereadable
}

// onceFunc runs x's handler once for its call and answers.
type onceFunc func(x *exchange, call semel.Call, next http.Handler)

// protect is the middleware around once.
func (s *settings) protect(e semel.Runner, op *semel.Operation[Request], sealed bool, once onceFunc) func(http.Handler) http.Handler {
	get, known := getterOf(e), newRepeats(e)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.ignores(r.Method) || s.unprotected(r, sealed) {
				next.ServeHTTP(w, r)
				return
			}
			x, done := s.open(w, r, known)
			if done {
				return
			}
			if x.in.key == "" && !sealed {
				next.ServeHTTP(w, x.in.of(r))
				return
			}
			x.op, x.get, x.sealed, x.known = op, get, sealed, known
			once(x, op.Call(x.in.scope, x.in.drawn(), requestOf(r, x.in.body)), next)
			if x.capture != nil { // not after a panic
				x.capture.release()
			}
		})
	}
}

// open lets r in, unless it is done with: refused, or answered as it was a moment
// ago.
func (s *settings) open(w http.ResponseWriter, r *http.Request, known *repeats) (x *exchange, done bool) {
	text := s.buffers.get()
	in, err := s.admit(w, r, true, text.b, known)
	if err != nil {
		s.refuse(w, r, err)
		return nil, true
	}
	again := known.find(r, &in)
	if again == nil || s.Reauthorize != nil {
		x = &exchange{s: s, w: w, r: r, in: in}
		x.in.body = append(x.room[:0], in.body...) // for the application's functions
	}
	if s.KeyFunc == nil { // which was given what was read
		text.b = in.body
		s.buffers.put(text)
	}
	switch {
	case again == nil:
		return x, false
	case x != nil:
		if err := s.reauthorize(r, &x.in); err != nil {
			s.refuse(w, r, err)
			return nil, true
		}
	}
	again.write(w)
	return nil, true
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
			x.end()
		}
		if r.MultipartForm != nil { // the server removes only those of its own request
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	next.ServeHTTP(c, r)
	late := x.end()
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
func (x *exchange) end() (late int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	return x.capture.close()
}

// nextRun is what the next run of the handler is given. What an earlier one was
// given stays with it.
func (x *exchange) nextRun() *run {
	own := &x.first
	if x.capture != nil {
		x.capture.release()
		own = new(run)
	}
	own.capture.w, own.capture.limit, own.capture.buffers = x.w, x.s.MaxResponse, &x.s.buffers
	own.capture.sealed, own.capture.header = x.sealed || !x.chunks(), headerFrom(x.w.Header())
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
	switch c := classOf(own.status); {
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
	case classOf(x.own.status) == classRefused:
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
