package client

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/semelgo/semel/internal/errtype"
)

// now measures how long a call has taken. It is compared with no time of another
// process, except with a Retry-After without a Date.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// clientCall is one call with all its tries.
type clientCall struct {
	t     *Transport    // with its defaults
	r     *http.Request // of the caller
	again *http.Request // copied for each try; its GetBody has the body of a later one
	line  string        // of the key; empty: none
	bound time.Duration // of the next random wait
	ends  time.Time     // end of the budget
	tries int
	sent  bool // a try may have reached the server
	// hopeless means that the last try could not begin, and no other can.
	hopeless bool
}

// run tries until the call is answered, or may not be tried again.
func (s *clientCall) run() (*http.Response, error) {
	s.t.RetryBudget.earn()
	for {
		resp, err := s.try()
		wait, again := s.next(resp, err)
		if !again || !s.t.RetryBudget.spend() {
			return resp, s.unanswered(err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		s.notify(resp, err, wait)
		if err := pause(s.r.Context(), wait); err != nil {
			return nil, s.unanswered(err)
		}
	}
}

// next reports whether there is another try, and after which wait.
func (s *clientCall) next(resp *http.Response, err error) (time.Duration, bool) {
	_, untrusted := errtype.Find[*tls.CertificateVerificationError](err)
	if s.r.Context().Err() != nil || s.tries == s.t.MaxTries || s.hopeless || untrusted || err == nil && !shouldRetry(resp, s.line != "") {
		return 0, false
	}
	wait, left := rand.N(s.bound), s.left()
	s.bound += min(s.bound, s.t.MaxBackoff-s.bound)
	if ends, ok := s.r.Context().Deadline(); ok { // the end of the context would lose resp
		left = min(left, ends.Sub(now()))
	}
	told, ok := retryAfter(resp)
	if ok && wait >= left-told { // no time is left for jitter
		wait = 0
	}
	return told + wait, wait < left-told
}

func (s *clientCall) left() time.Duration { return s.ends.Sub(now()) }

// unanswered returns err as the call's error; nil stays nil.
func (s *clientCall) unanswered(err error) error {
	if err == nil {
		return nil
	}
	return &UnansweredError{Key: s.line, Tries: s.tries, Sent: s.sent, Err: err}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
