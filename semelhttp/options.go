package semelhttp

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

const (
	defaultMax = 1 << 20 // of a request's body
	// defaultMaxResponse leaves space for the headers in the 1 MiB that the stores,
	// except store/etcd, accept for an outcome.
	defaultMaxResponse = 960 << 10
)

// Options say how requests are protected. Only ScopeFunc is required.
type Options struct {
	// Profile is the set of conventions that the API's clients know. Zero:
	// [Lenient].
	Profile Profile
	// ScopeFunc returns the scope of the caller: from what authentication has put
	// into the request's context, never from an unverified claim of the client.
	// Required. Its error is answered and never stored: with its *Problem if it has
	// one, else with 401.
	ScopeFunc func(*http.Request) (semel.Scope, error)
	// KeyFunc reads the key from the request itself, from a field of its body for
	// instance (see [KeyField]), instead of from the header, which is then ignored.
	// It receives the request and the body, which was read and is no larger than
	// MaxBody. A key is 1 to 255 bytes; empty means that the request has none. Its
	// error is answered and never stored: with its *Problem if it has one, else
	// with 400 key_malformed. Nil: the key is in the header.
	KeyFunc func(r *http.Request, body []byte) (string, error)
	// Reauthorize is called before a stored response is sent, a result, a failure
	// or the fact that there is one: it says whether the caller may still have it.
	// Its error is answered instead, with its *Problem if it has one, else with
	// 403; the stored response does not change. Nil: every sender of the same
	// request may have the response.
	Reauthorize func(*http.Request) error
	// Optional lets requests without a key run. Behind Middleware they reach the
	// handler untouched. Behind Atomic and Handle, whose operations need a
	// transaction or a call, they get a random key that no request can repeat; it
	// contains no time, so operations with a KeyTime refuse it. A malformed key is
	// refused all the same. False: a request without a key is 400.
	Optional bool
	// StatusVerdict says what a status from 400 up proves about the effect of a
	// handler behind [Middleware] that did not commit by semel.InTx. NotCommitted:
	// nothing happened; the response is not stored and the same key may be retried.
	// Committed: the response is the outcome; it is stored and replayed. Unknown:
	// the effect is unknown, as from 500 up. Behind [Atomic] it is not called: a
	// rollback is proof. Nil: the table at Middleware, which takes 401, 403, 408,
	// 413, 415, 423, 425 and 429 for proof. Set it if a handler returns such a
	// status of another service after it has had an effect of its own.
	StatusVerdict func(status int) store.Verdict
	// MaxBody is the largest request body, in bytes; a larger one is 413, before
	// the store is used. Zero: 1 MiB.
	MaxBody int64
	// MaxResponse is the largest response body that is stored, in bytes. The first
	// caller gets a larger one whole; retries are told that the operation succeeded
	// and that its response is not available, or, after a refusal, get its status
	// alone. The store has a limit of its own, which includes the headers: 512 KiB in
	// store/etcd, and 1 MiB in the other stores of this module. Behind [Atomic] a refusal
	// takes a third more space there, so one of more than about 760 KiB is too large. Zero:
	// 960 KiB.
	MaxResponse int64
	// StreamTypes are the media types of responses that are streams, besides
	// text/event-stream, application/x-ndjson, application/jsonl, application/grpc
	// and multipart/x-mixed-replace; "*" makes every flushed response a stream.
	// Behind [Middleware] a flush sends a stream to the first caller, and retries
	// are told that its response is not available. Any other response is held back
	// up to MaxResponse, however often its handler flushes it.
	StreamTypes []string
	// KeepNoStore stores and replays responses with Cache-Control: no-store like
	// any other. False: they may contain data that must not be stored, so only the
	// first caller gets them; the operation has happened all the same, and retries
	// are told so and that its response is not available. Set it if such a header
	// is set on every response.
	KeepNoStore bool
	// FingerprintHeaders are the request headers that are parameters of the
	// operation, such as If-Match, Prefer or Stripe-Account: a request with another
	// value is another request. Host stands for the server that the client
	// requested, which matters if several names lead to one scope. An absent header
	// is not compared, so adding a name changes nothing for requests without it.
	// None: no header but the media type is compared. Behind [Handle] see
	// [Endpoint].
	FingerprintHeaders []string
	// ReplayHeaders are stored and replayed besides Cache-Control,
	// Content-Disposition, Content-Encoding, Content-Language, Content-Location,
	// Content-Type, ETag, Last-Modified, Link, Location and Vary. Headers that
	// belong to one exchange, such as Set-Cookie and Date, are refused.
	ReplayHeaders []string
	// ProblemBase is the prefix of a problem's code in its type: the path at which
	// [Problems] is served. Empty: "/problems/".
	ProblemBase string
	// ErrorFunc receives the errors whose text is not shown to the client: those
	// answered with status 500 or 503, and what Endpoint.Decode returned without a
	// *Problem. Nil: they are logged by slog.Default, with the method, the route's
	// pattern and the error, at level Error for 500, Warn for 503 and Info for 400.
	ErrorFunc func(*http.Request, error)
}

// settings are valid Options with the defaults filled in. ReplayHeaders has all
// headers that are replayed.
type settings struct {
	Options
	profileRules
	form bool // behind Form
	// atomic means that the handler runs in a transaction, so that its response must
	// wait for the COMMIT.
	atomic bool
}

func (o Options) settle() (*settings, error) {
	rules, ok := o.Profile.rules()
	switch {
	case o.ScopeFunc == nil:
		return nil, &semel.FieldError{Field: "ScopeFunc", Reason: "is required: without it callers would share answers"}
	case o.MaxBody < 0:
		return nil, &semel.FieldError{Field: "MaxBody", Reason: "is negative"}
	case o.MaxResponse < 0:
		return nil, &semel.FieldError{Field: "MaxResponse", Reason: "is negative"}
	case !ok:
		return nil, &semel.FieldError{Field: "Profile", Reason: "is not known: " + o.Profile.String()}
	}
	o.MaxBody = cmp.Or(o.MaxBody, defaultMax)
	o.MaxResponse = cmp.Or(o.MaxResponse, defaultMaxResponse)
	o.ProblemBase = cmp.Or(o.ProblemBase, DefaultProblemBase)
	o.StreamTypes = append(streamTypes(), o.StreamTypes...)
	replayed, err := headerNames("ReplayHeaders", o.ReplayHeaders, neverKept, "is never replayed")
	if err != nil {
		return nil, err
	}
	o.ReplayHeaders = append(keptByDefault(), replayed...)
	o.FingerprintHeaders, err = headerNames("FingerprintHeaders", o.FingerprintHeaders, differsBetweenRetries,
		"may differ between retries of one request")
	if err != nil {
		return nil, err
	}
	return &settings{Options: o, profileRules: rules}, nil
}

// refuse responds with err's problem, and gives ErrorFunc what the client is not
// shown.
func (s *settings) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := *ProblemOf(err)
	if _, ok := errtype.Find[*semel.FieldError](err); ok && s.KeyFunc != nil && p.Field == HeaderKey {
		p.Field = "" // the key is in no header
	}
	if p.Status == http.StatusInternalServerError || p.Status == http.StatusServiceUnavailable {
		s.report(r, p.Status, err)
	}
	s.sendProblem(w, &p)
}

// report gives the application an error that the client is not shown.
func (s *settings) report(r *http.Request, status int, err error) {
	if s.ErrorFunc != nil {
		s.ErrorFunc(r, err)
		return
	}
	levels := map[int]slog.Level{http.StatusInternalServerError: slog.LevelError, http.StatusServiceUnavailable: slog.LevelWarn}
	slog.Default().LogAttrs(r.Context(), levels[status], "semelhttp: request", slog.String("method", r.Method),
		slog.String("route", r.Pattern), slog.Int("status", status), slog.String("error", err.Error()))
}

func (s *settings) sendProblem(w http.ResponseWriter, p *Problem) { sendError(w, s.responseTo(p)) }

// responseTo returns p in the format of the profile. The type of this package's own
// problems points to their documentation.
func (s *settings) responseTo(p *Problem) Response {
	full := p.complete()
	if p.Type == DefaultProblemBase+p.Code {
		full.Type = s.ProblemBase + p.Code
		full.Status = cmp.Or(s.statuses[p.Code], full.Status)
	}
	return s.format(full)
}
