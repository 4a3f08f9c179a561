package semelhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// now measures how long a call has taken. It is compared with nothing that
// another process wrote, but for a Retry-After that comes without a Date.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// sending is one call on its way: all its tries.
type sending struct {
	t     *Transport // settled
	r     *http.Request
	line  string // of the key; empty: none
	body  payload
	waits *backoff.ExponentialBackOff
	ends  time.Time // when the budget is used up
	tries int
	sent  bool // a try may have reached the server
}

// newSending begins a call: its budget counts from here on.
func (t *Transport) newSending(r *http.Request, line string) *sending {
	// A factor of one is full jitter: from nothing to twice the interval.
	waits := &backoff.ExponentialBackOff{
		InitialInterval: max(t.MinBackoff/2, 1), MaxInterval: max(t.MaxBackoff/2, 1), // from zero nothing grows
		Multiplier: 2, RandomizationFactor: 1,
	}
	return &sending{t: t, r: r, line: line, waits: waits, ends: now().Add(t.Budget)}
}

// run tries until the call is answered, or may not be tried again.
func (s *sending) run() (*http.Response, error) {
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
		s.tells(resp, err, wait)
		if err := pause(s.r.Context(), wait); err != nil {
			return nil, s.unanswered(err)
		}
	}
}

// next says whether there is to be another try, and after what wait.
func (s *sending) next(resp *http.Response, err error) (time.Duration, bool) {
	switch {
	case s.r.Context().Err() != nil, s.tries == s.t.MaxTries:
		return 0, false
	case err != nil && hopeless(err), err == nil && !s.t.asksAgain(resp, s.line != ""):
		return 0, false
	}
	wait, left := s.waits.NextBackOff(), s.left()
	if ends, ok := s.r.Context().Deadline(); ok { // whose end would lose resp
		left = min(left, ends.Sub(now()))
	}
	if resp == nil {
		return wait, wait < left
	}
	told, ok := retryAfter(resp)
	if ok && wait >= left-told { // no room for being late on purpose
		wait = 0
	}
	return told + wait, wait < left-told
}

func (s *sending) left() time.Duration { return s.ends.Sub(now()) }

// once sends the only try of a body that cannot be sent again.
func (s *sending) once() (*http.Response, error) {
	resp, err := s.send(s.r.Context(), s.body.first)
	return resp, s.unanswered(err)
}

// unanswered returns err as what the call came to; nil stays nil.
func (s *sending) unanswered(err error) error {
	if err == nil {
		return nil
	}
	return &UnansweredError{Key: s.line, Tries: s.tries, Sent: s.sent, Err: err}
}

// hopeless reports whether another try would end as this one did: nothing could
// be sent, or the server is not who it should be.
func hopeless(err error) bool {
	_, unsent := errors.AsType[*unsendableError](err)
	return unsent || untrusted(err)
}

// unsendableError is why a try could not even begin.
type unsendableError struct{ err error }

func (e *unsendableError) Error() string { return e.err.Error() }
func (e *unsendableError) Unwrap() error { return e.err }

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
