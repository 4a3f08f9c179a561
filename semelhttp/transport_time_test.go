package semelhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// tripper is a base in a bubble: it answers at once, and notes when it was asked.
type tripper struct {
	answer func(try int, r *http.Request) (*http.Response, error)

	mu sync.Mutex
	at []time.Time
}

func (b *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.at = append(b.at, time.Now())
	n := len(b.at)
	b.mu.Unlock()
	if r.Body != nil {
		defer r.Body.Close()
	}
	return b.answer(n, r)
}

// waits are the times between the tries.
func (b *tripper) waits() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(b.at); i++ {
		waits = append(waits, b.at[i].Sub(b.at[i-1]))
	}
	return waits
}

// respond is a whole response.
func respond(r *http.Request, code int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: code, Header: h, Request: r, ContentLength: 4, Body: io.NopCloser(strings.NewReader("body")),
	}
}

// always answers every try the same way.
func always(code int, header ...string) *tripper {
	return &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) { return respond(r, code, header...), nil }}
}

// TestTransportWaitsARandomTime, which double.
func TestTransportWaitsARandomTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bounds := []time.Duration{100, 200, 400, 800, 1000, 1000}
		longest := make([]time.Duration, len(bounds))
		const calls = 200
		for range calls {
			b := always(http.StatusServiceUnavailable)
			tr := &semelhttp.Transport{
				Base: b, MaxTries: len(bounds) + 1, MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second,
			}
			resp, err := tr.RoundTrip(post(t, "http://x", nil))
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
				t.Fatalf("RoundTrip = %v, %v", resp, err)
			}
			for i, wait := range b.waits() {
				longest[i] = max(longest[i], wait)
			}
		}
		for i, bound := range bounds {
			bound *= time.Millisecond
			if longest[i] > bound || longest[i] < bound*8/10 { // 200 draws below 8/10: one in 10^19
				t.Errorf("wait %d was at most %v in %d calls, want nearly %v and no more", i+1, longest[i], calls, bound)
			}
		}
	})
}

// TestTransportHonoursRetryAfter in seconds and as a date, by the server's clock.
func TestTransportHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, row := range map[string]struct {
		header func() []string
		least  time.Duration
	}{
		"seconds":              {func() []string { return []string{"Retry-After", "7"} }, 7 * time.Second},
		"date":                 {func() []string { return []string{"Retry-After", at(9 * time.Second), "Date", at(0)} }, 9 * time.Second},
		"date of another time": {func() []string { return []string{"Retry-After", at(time.Hour + 5*time.Second), "Date", at(time.Hour)} }, 5 * time.Second},
		"date without one":     {func() []string { return []string{"Retry-After", at(9 * time.Second)} }, 9 * time.Second},
		"date that is past":    {func() []string { return []string{"Retry-After", at(-time.Hour), "Date", at(0)} }, 0},
		"nonsense":             {func() []string { return []string{"Retry-After", "soon"} }, 0},
		"below zero":           {func() []string { return []string{"Retry-After", "-3"} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := always(http.StatusTooManyRequests, row.header()...)
				tr := &semelhttp.Transport{Base: b, MaxTries: 2, MinBackoff: 500 * time.Millisecond}
				if _, err := tr.RoundTrip(post(t, "http://x", nil)); err != nil {
					t.Fatal(err)
				}
				waits := b.waits()
				if len(waits) != 1 || waits[0] <= row.least || waits[0] > row.least+500*time.Millisecond {
					t.Errorf("waited %v, want more than %v, by up to half a second", waits, row.least)
				}
			})
		})
	}
}

// TestTransportStopsAtItsBudget with the last response as it is, and does not
// wait for what lies beyond.
func TestTransportStopsAtItsBudget(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	for name, row := range map[string]struct {
		after  string
		budget time.Duration
		ctx    func(*testing.T) context.Context
		tries  int // zero: more than ten
	}{
		"no Retry-After":       {"", 10 * time.Second, (*testing.T).Context, 0},
		"Retry-After 3":        {"3", 10 * time.Second, (*testing.T).Context, 4},
		"Retry-After 11":       {"11", 10 * time.Second, (*testing.T).Context, 1},
		"Retry-After for ever": {"99999999999999999999", 10 * time.Second, (*testing.T).Context, 1},
		"almost for ever":      {"18446744073709551615", 10 * time.Second, (*testing.T).Context, 1},
		"the context's end":    {"3", time.Hour, short, 4},
		"the usual":            {"25", 0, (*testing.T).Context, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, began := always(http.StatusServiceUnavailable, "Retry-After", row.after), time.Now()
				tr := &semelhttp.Transport{Base: b, Budget: row.budget, MaxBackoff: 250 * time.Millisecond}
				resp, err := tr.RoundTrip(post(t, "http://x", nil).WithContext(row.ctx(t)))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusServiceUnavailable || string(text) != "body" || err != nil {
					t.Errorf("got %d %q, %v", resp.StatusCode, text, err)
				}
				if n := len(b.at); row.tries != 0 && n != row.tries || row.tries == 0 && n <= 10 {
					t.Errorf("%d tries, want %d", n, row.tries)
				}
				if took := time.Since(began); took > max(row.budget, time.Minute) || row.tries == 1 && took != 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestTransportAddsNoJitterAtTheEndOfItsBudget when Retry-After leaves little of the budget.
func TestTransportAddsNoJitterAtTheEndOfItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			b := always(http.StatusServiceUnavailable, "Retry-After", "9")
			tr := &semelhttp.Transport{Base: b, Budget: 10 * time.Second, MinBackoff: 20 * time.Second}
			if _, err := tr.RoundTrip(post(t, "http://x", nil)); err != nil || len(b.at) != 2 {
				t.Fatalf("%d tries, %v, want two", len(b.at), err)
			}
		}
	})
}

// TestTransportAddsHugeWaits: neither the longest Retry-After nor the longest
// waits make it ask again at once.
func TestTransportAddsHugeWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []string{"99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
			for _, bound := range []time.Duration{0, 100 * time.Second, math.MaxInt64} {
				b := always(http.StatusServiceUnavailable, "Retry-After", after)
				tr := &semelhttp.Transport{Base: b, MaxTries: 5, MinBackoff: bound, MaxBackoff: bound}
				if _, err := tr.RoundTrip(post(t, "http://x", nil)); err != nil || len(b.at) != 1 {
					t.Errorf("Retry-After %s, waits up to %v: %d tries, %v, want one", after, bound, len(b.at), err)
				}
			}
		}
	})
}

// TestTransportBacksOffFromTheMinimum that can be said.
func TestTransportBacksOffFromTheMinimum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := always(http.StatusServiceUnavailable)
		tr := &semelhttp.Transport{Base: b, MinBackoff: 1, MaxBackoff: time.Second, MaxTries: 200}
		if _, err := tr.RoundTrip(post(t, "http://x", nil)); err != nil {
			t.Fatal(err)
		}
		if n := len(b.at); n >= 200 {
			t.Errorf("%d tries in a minute, want far less", n)
		}
	})
}

// TestTransportBoundsTheCopying of a body that never ends, and sends nothing of it.
func TestTransportBoundsTheCopying(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endless, _ := io.Pipe()
		b, began := always(http.StatusOK), time.Now()
		_, err := (&semelhttp.Transport{Base: b, Budget: 5 * time.Second}).RoundTrip(post(t, "http://x", endless))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, semel.ErrOutcomeUnknown) || len(b.at) != 0 {
			t.Errorf("got the error %v after %d tries, want that there was no time", err, len(b.at))
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v, want the budget", took)
		}
	})
}

// counted is a body that is too long to be held, and counts who closes it.
type maxAutoLength struct {
	io.Reader

	closed *int
}

func (c maxAutoLength) Close() error {
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
			resp.ContentLength, resp.Body = -1, maxAutoLength{strings.NewReader("too long to be held"), &closed}
			return resp, nil
		}}
		if _, err := (&semelhttp.Transport{Base: b, MaxBody: 8}).RoundTrip(post(t, "http://x", nil)); err != nil {
			t.Fatal(err)
		}
		if closed != 3 {
			t.Errorf("%d of 3 responses were closed", closed)
		}
		for i, ctx := range tries {
			if ctx.Err() == nil {
				t.Errorf("the context of try %d has not ended", i+1)
			}
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
		_, err := (&semelhttp.Transport{Base: b, Budget: 10 * time.Second, TryTimeout: 3 * time.Second}).
			RoundTrip(post(t, "http://x", nil))
		var unanswered *semelhttp.UnansweredError
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
				_, err := (&semelhttp.Transport{Base: b}).RoundTrip(post(t, "http://x", nil).WithContext(ctx))
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
		resp, err := (&semelhttp.Transport{Base: b}).RoundTrip(post(t, "http://x", nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(resp.Body, 50))
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("line\n"), 10)) {
			t.Errorf("read %q, %v, over ten minutes", got, err)
		}
		_ = resp.Body.Close()
		if ctx.Err() == nil {
			t.Error("the try's context outlives its response")
		}
	})
}
