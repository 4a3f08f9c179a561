// Package client sends HTTP requests until they are answered: [Transport] retries under
// one Idempotency-Key and with the same bytes. Within an operation the key is derived
// from the operation's, so that every attempt makes the same call; see [WithChildKey].
package client

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// Transport is an http.RoundTripper that makes one call out of many tries: it gives a
// request its key, sends it, and sends the same bytes under the same key again until they
// are answered. Use it as the Transport of an http.Client. The zero value is usable. Do not
// change its fields while it is in use.
//
// # The key
//
// A request that has an Idempotency-Key keeps it, byte for byte. A POST or PATCH without
// one gets one: inside an operation the child key that [WithChildKey] names; otherwise the
// key of KeyFunc. A request that follows a redirect keeps its key, on another host too:
// otherwise a retry would reach that host with another key. An http.Client whose
// CheckRedirect returns http.ErrUseLastResponse follows no redirect. The caller's request
// is not changed: the key that was sent is in the header of Response.Request, or in the
// [UnansweredError].
//
// # Retries
//
// Transport retries after tries without a whole response in time: no connection, a lost
// connection, or no response within TryTimeout. It retries after responses with status 408,
// 425, 429, 502, 503 and 504. For a request with a key it also retries after a response from
// status 400 up with Stripe-Should-Retry: true, a 423 with Retry-After, and a 409 that says
// that it is temporary: by Retry-After, by the code in_progress in a problem
// (application/problem+json), or by the code idempotency_key_in_use in the error object of a
// JSON body, as Stripe writes it. Any other 409 is the answer of the operation ("name taken",
// "version is old") and is returned after one request.
//
// A response with Idempotent-Replayed: true is stored, and one with Stripe-Should-Retry:
// false is final: Transport retries after neither. A Base can set the latter, for a 503 that
// means "closed on Sundays" for instance. After 400, 401, 403 and 422 it never
// retries, whatever the response says.
//
// Between tries it waits a random time, at most MinBackoff after the first and twice as much
// after each further one, up to MaxBackoff. Retry-After, in seconds or as a date, is added.
// When Budget, MaxTries or RetryBudget is used up, or Retry-After is longer than the rest of
// the budget, the last response is returned as it is; without one the error is an
// UnansweredError.
//
// GET, HEAD, OPTIONS and TRACE are retried too, without a key. A PUT, DELETE or other request
// is sent once by Base, unless it has a key, or is named by WithChildKey. A request to upgrade
// the connection goes to Base as it is.
//
// # Bodies
//
// Each try sends the same bytes: from GetBody, which http.NewRequest sets for bodies in
// memory, or from a copy of at most MaxBody bytes. A body that can be sent only once is
// refused before anything is sent.
//
// A response that announces its length, of at most MaxBody bytes, is read before it is
// returned, so that a connection that is lost meanwhile leads to a retry. Any other is
// returned after its header was read, and the caller reads its body.
//
// Leave http.Client.Timeout at zero and set Budget: when that timeout is over, the client
// drops the UnansweredError, and the key with it.
type Transport struct {
	// Base sends a try. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Budget is how long a call may take until it has a response, with the copying
	// of its body and all its tries and waits. Zero: 1 min. The deadline of the
	// request's context applies too. Copying a body stops then only if its Close
	// ends its Read. A redirect that http.Client follows is a call of its own, with
	// a budget of its own.
	Budget time.Duration
	// TryTimeout is how long one try may take until it has a response. Make it
	// longer than the receiver usually takes. Zero: 10 s.
	TryTimeout time.Duration
	// MaxTries is the largest number of tries of a call. Zero: as many as the
	// budget allows. One: a key, and no second try.
	MaxTries int
	// MinBackoff and MaxBackoff are the upper bounds of the first wait and of the
	// longest one; each wait is random below its bound. Zero: 100 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration
	// MaxBody is the largest body, of a request or a response, that is held in
	// memory to be sent again or read ahead, in bytes. Zero: 1 MiB.
	MaxBody int64
	// Header is the request header that carries the key, such as PayPal-Request-Id
	// or X-Idempotency-Key. Empty: Idempotency-Key.
	Header string
	// RetryBudget limits the retries of all calls together, so that retries do not
	// keep an overloaded receiver down. Transports may share one. Nil: each call
	// has its Budget and its MaxTries only.
	RetryBudget *RetryBudget
	// RawKeys sends keys as they are, as Stripe and most other APIs want them.
	// False: as the structured string of the draft, in quotes.
	RawKeys bool
	// KeyFunc returns the key of a request that has none and is no child of an
	// operation: 1 to 255 visible ASCII characters and inner spaces, the same for
	// the same intent. It must not read the body. Its error is returned, and
	// nothing is sent. Nil: a random UUID of version 7. Within an operation a
	// request without a child key is then semel.ErrInvalid, because each attempt
	// would send another key.
	KeyFunc func(*http.Request) (string, error)
	// RequireKey refuses a POST or PATCH that has no key, from its header, from
	// WithChildKey or from KeyFunc, with a *semel.FieldError before anything is
	// sent. Set it if the calling code must keep its keys: a request inside an
	// operation that was made without the operation's context cannot be
	// distinguished from one outside, and would get another random key in each
	// attempt. False: such a request gets a random key.
	RequireKey bool
	// OnRetry is called before each wait for another try, in the goroutine of the
	// call, so it should return soon. It is not called after the last try. It may
	// be called concurrently if the Transport is used concurrently. Nil: nothing is
	// called.
	OnRetry func(Retry)
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip sends r until it is answered, as [Transport] says. An error is a
// *UnansweredError if the request was, or could have been, sent; otherwise it says
// what is wrong with the request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var line string
	o, err := t.settle()
	if err == nil {
		line, err = o.keyLine(r)
	}
	switch {
	case err != nil:
		closeBody(r)
		return nil, err
	case line == "" && !wire.Safe(r.Method), r.Header.Get("Upgrade") != "":
		return o.Base.RoundTrip(r)
	}
	s := &clientCall{t: o, r: r, line: line, bound: o.MinBackoff, ends: now().Add(o.Budget)}
	if s.again, err = o.repeatable(r, s.left()); err != nil {
		return nil, err
	}
	return s.run()
}

// CloseIdleConnections closes those of Base, if it has any.
func (t *Transport) CloseIdleConnections() {
	if c, ok := cmp.Or(t.Base, http.DefaultTransport).(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

const (
	defaultBudget     = time.Minute
	defaultTryTimeout = 10 * time.Second
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 5 * time.Second
	defaultHeld       = 1 << 20
)

// settle returns t with its defaults, or an error about a field.
func (t *Transport) settle() (*Transport, error) {
	for _, field := range []struct {
		name string
		n    int64
	}{
		{"Budget", int64(t.Budget)},
		{"TryTimeout", int64(t.TryTimeout)},
		{"MinBackoff", int64(t.MinBackoff)},
		{"MaxBackoff", int64(t.MaxBackoff)},
		{"MaxTries", int64(t.MaxTries)},
		{"MaxBody", t.MaxBody},
	} {
		if field.n < 0 {
			return nil, &semel.FieldError{Field: field.name, Reason: "is negative"}
		}
	}
	o := *t
	o.Base = cmp.Or(o.Base, http.DefaultTransport)
	o.Budget = cmp.Or(o.Budget, defaultBudget)
	o.TryTimeout = cmp.Or(o.TryTimeout, defaultTryTimeout)
	o.MinBackoff = cmp.Or(o.MinBackoff, defaultMinBackoff)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, max(defaultMaxBackoff, o.MinBackoff))
	o.MaxBody = cmp.Or(o.MaxBody, defaultHeld)
	o.Header = http.CanonicalHeaderKey(cmp.Or(o.Header, wire.HeaderKey))
	if o.MaxBackoff < o.MinBackoff {
		return nil, &semel.FieldError{Field: "MaxBackoff", Reason: "is below MinBackoff"}
	}
	if !wire.IsToken(o.Header) {
		return nil, &semel.FieldError{Field: "Header", Reason: "is no name of a header"}
	}
	return &o, o.RetryBudget.valid()
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

type childName struct{}

// WithChildKey returns a context whose requests carry semel.ChildKey of the
// operation of ctx when [Transport] sends them: the same key in every attempt. Two
// requests with one name are one call, so give each request of the operation a name
// of its own. Outside of an operation such a request is refused: no key would
// protect it.
func WithChildKey(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, childName{}, name)
}
