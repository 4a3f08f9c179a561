package client_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportWaitsARandomTime, which double.
func TestTransportWaitsARandomTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bounds := []time.Duration{100, 200, 400, 800, 1000, 1000}
		longest := make([]time.Duration, len(bounds))
		const calls = 200
		for range calls {
			b := always(http.StatusServiceUnavailable)
			tr := &client.Transport{
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
				tr := &client.Transport{Base: b, MaxTries: 2, MinBackoff: 500 * time.Millisecond}
				check.Must(tr.RoundTrip(post(t, "http://x", nil)))(t)
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
				tr := &client.Transport{Base: b, Budget: row.budget, MaxBackoff: 250 * time.Millisecond}
				resp, err := tr.RoundTrip(post(t, "http://x", nil).WithContext(row.ctx(t)))
				check.Require(t, err)
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
			tr := &client.Transport{Base: b, Budget: 10 * time.Second, MinBackoff: 20 * time.Second}
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
				tr := &client.Transport{Base: b, MaxTries: 5, MinBackoff: bound, MaxBackoff: bound}
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
		tr := &client.Transport{Base: b, MinBackoff: 1, MaxBackoff: time.Second, MaxTries: 200}
		check.Must(tr.RoundTrip(post(t, "http://x", nil)))(t)
		if n := len(b.at); n >= 200 {
			t.Errorf("%d tries in a minute, want far less", n)
		}
	})
}
