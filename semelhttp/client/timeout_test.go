package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportBoundsTheCopying of a body that never ends by the budget and by the context,
// and sends nothing of it.
func TestTransportBoundsTheCopying(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ budget, ctx time.Duration }{{5 * time.Second, time.Hour}, {time.Hour, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
			defer cancel()
			endless, _ := io.Pipe()
			b, began := always(http.StatusOK), time.Now()
			_, err := (&client.Transport{Base: b, Budget: row.budget}).RoundTrip(post(t, "http://x", endless).WithContext(ctx))
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, semel.ErrOutcomeUnknown) || len(b.at) != 0 {
				t.Errorf("got the error %v after %d tries, want that there was no time", err, len(b.at))
			}
			check.Equal(t, time.Since(began), 5*time.Second, "took, with the budget %v", row.budget)
		})
	}
}

// countedBody is a body that is too long to be held, and counts how often it is closed.
type countedBody struct {
	io.Reader

	closed *int
}

func (c countedBody) Close() error {
	*c.closed++
	return nil
}

// TestTransportLeavesNothingOpen of the tries before the last: neither their
// responses nor their contexts; of the last one, when it was read.
func TestTransportLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var closed int
		var tries []context.Context
		b := &tripper{answer: func(try int, r *http.Request) (*http.Response, error) {
			tries = append(tries, r.Context())
			resp := respond(r, http.StatusServiceUnavailable)
			if try == 4 {
				return respond(r, http.StatusOK), nil
			}
			resp.ContentLength, resp.Body = -1, countedBody{strings.NewReader("too long to be held"), &closed}
			return resp, nil
		}}
		check.Must((&client.Transport{Base: b, MaxBody: 8}).RoundTrip(post(t, "http://x", nil)))(t)
		if closed != 3 {
			t.Errorf("%d of 3 responses were closed", closed)
		}
		for i, ctx := range tries {
			check.Fails(t, ctx.Err(), "the context of try %d has not ended", i+1)
		}
	})
}

// TestTransportBoundsATry and the last one by the budget. What was sent may have
// had its effect, and the error says so.
func TestTransportBoundsATry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		began := time.Now()
		_, err := (&client.Transport{Base: b, Budget: 10 * time.Second, TryTimeout: 3 * time.Second}).
			RoundTrip(post(t, "http://x", nil))
		var unanswered *client.UnansweredError
		if !errors.As(err, &unanswered) || !errors.Is(err, semel.ErrOutcomeUnknown) || unanswered.Tries < 4 {
			t.Errorf("got the error %v, want an unknown outcome after 4 tries or more", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v, past the budget", took)
		}
	})
}

// TestTransportEndsWithItsContext at once, and says why it ended.
func TestTransportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	waiting := always(http.StatusServiceUnavailable, "Retry-After", "30")
	trying := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, errors.New("broken")
	}}
	for name, b := range map[string]*tripper{"waiting": waiting, "trying": trying} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				began := time.Now()
				time.AfterFunc(time.Second, func() { cancel(gone) })
				_, err := (&client.Transport{Base: b}).RoundTrip(post(t, "http://x", nil).WithContext(ctx))
				if !errors.Is(err, gone) || !errors.Is(err, semel.ErrOutcomeUnknown) {
					t.Errorf("got the error %v, want the cause and that the outcome is unknown", err)
				}
				if took := time.Since(began); took != time.Second || len(b.at) != 1 {
					t.Errorf("%d tries took %v", len(b.at), took)
				}
			})
		})
	}
}

// streaming is a body that comes while the context of its request lasts.
type streaming struct {
	ctx context.Context
}

func (s streaming) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Minute):
		return copy(p, "line\n"), nil
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

func (streaming) Close() error { return nil }

// TestTransportEndsATry whose response does not come whole in time, and retries.
func TestTransportEndsATry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &tripper{answer: func(try int, r *http.Request) (*http.Response, error) {
			resp := respond(r, http.StatusOK)
			if try == 1 {
				resp.Body = streaming{r.Context()}
			}
			return resp, nil
		}}
		resp := check.Must((&client.Transport{Base: b, TryTimeout: 3 * time.Second}).RoundTrip(post(t, "http://x", nil)))(t)
		text, err := io.ReadAll(resp.Body)
		if string(text) != "body" || err != nil || len(b.at) != 2 {
			t.Errorf("read %q, %v, after %d tries, want the body of the second", text, err, len(b.at))
		}
	})
}

// TestTransportDoesNotBoundTheReading of a response that it has returned; the
// reader's Close ends the try.
func TestTransportDoesNotBoundTheReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		b := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			resp := respond(r, http.StatusOK)
			resp.ContentLength, resp.Body = -1, streaming{ctx}
			return resp, nil
		}}
		resp, err := (&client.Transport{Base: b}).RoundTrip(post(t, "http://x", nil))
		check.Require(t, err)
		got, err := io.ReadAll(io.LimitReader(resp.Body, 50))
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("line\n"), 10)) {
			t.Errorf("read %q, %v, over ten minutes", got, err)
		}
		_ = resp.Body.Close()
		check.Fails(t, ctx.Err(), "the try's context outlives its response")
	})
}
