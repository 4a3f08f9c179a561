package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// now measures how long a call has taken. It is compared with no time of another
// process, except with a Retry-After without a Date.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// clientCall is one call with all its tries.
type clientCall struct {
	t     *Transport // with its defaults
	r     *http.Request
	line  string // of the key; empty: none
	body  requestBody
	waits *backoff.ExponentialBackOff
	ends  time.Time // end of the budget
	tries int
	sent  bool // a try may have reached the server
}

// newCall begins a call: its budget counts from here on.
func (t *Transport) newCall(r *http.Request, line string) *clientCall {
	// A factor of one is full jitter: from zero to twice the interval.
	waits := &backoff.ExponentialBackOff{
		InitialInterval: max(t.MinBackoff/2, 1), MaxInterval: max(t.MaxBackoff/2, 1), // an interval of zero does not grow
		Multiplier: 2, RandomizationFactor: 1,
	}
	return &clientCall{t: t, r: r, line: line, waits: waits, ends: now().Add(t.Budget)}
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
	switch {
	case s.r.Context().Err() != nil, s.tries == s.t.MaxTries:
		return 0, false
	case err != nil && isHopeless(err), err == nil && !s.t.shouldRetry(resp, s.line != ""):
		return 0, false
	}
	wait, left := s.waits.NextBackOff(), s.left()
	if ends, ok := s.r.Context().Deadline(); ok { // the end of the context would lose resp
		left = min(left, ends.Sub(now()))
	}
	if resp == nil {
		return wait, wait < left
	}
	told, ok := retryAfter(resp)
	if ok && wait >= left-told { // no time is left for jitter
		wait = 0
	}
	return told + wait, wait < left-told
}

func (s *clientCall) left() time.Duration { return s.ends.Sub(now()) }

// once makes the only try of a body that cannot be sent again.
func (s *clientCall) once() (*http.Response, error) {
	resp, err := s.send(s.r.Context(), s.body.first)
	return resp, s.unanswered(err)
}

// unanswered returns err as the call's error; nil stays nil.
func (s *clientCall) unanswered(err error) error {
	if err == nil {
		return nil
	}
	return &UnansweredError{Key: s.line, Tries: s.tries, Sent: s.sent, Err: err}
}

// isHopeless reports whether another try would end in the same way: nothing could
// be sent, or the server's identity is wrong.
func isHopeless(err error) bool {
	_, unsent := errors.AsType[*sendError](err)
	return unsent || untrusted(err)
}

// sendError is why a try could not begin.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

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
