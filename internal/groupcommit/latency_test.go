package groupcommit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/groupcommit"
)

// TestHighLatencyMixesKinds checks that larger batches stay mixed when the latency of
// recent small batches is high. A skipped request would wait for one more round trip.
func TestHighLatencyMixesKinds(t *testing.T) {
	t.Parallel()
	const low, high, fails = 300 * time.Microsecond, 2 * time.Millisecond, time.Microsecond
	always := func(d time.Duration) []time.Duration { return []time.Duration{d, d, d} }
	for name, c := range map[string]struct {
		earlier []time.Duration // durations of earlier small batches; zero: high
		waiting int
		mixed   bool // the next batch takes all waiting requests
	}{
		"low, few waiting":     {always(low), 16, true},
		"low":                  {always(low), 64, false},
		"high":                 {always(high), 64, true},
		"high, many waiting":   {always(high), 66, false},
		"low again":            {[]time.Duration{high, high, low}, 64, false},
		"low, and one stall":   {[]time.Duration{low, low, time.Minute / 2}, 64, false},
		"slowly growing":       {append([]time.Duration{low}, make([]time.Duration, 40)...), 64, true},
		"high, and one failed": {append(always(high), fails), 64, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var delay time.Duration
				s := &recordingStore{fail: func([]request) error {
					if delay == fails {
						return errors.New("down")
					}
					return nil
				}}
				g := newBatcher(s, func(o *config) {
					o.Flushers, o.ParallelAt, o.Kind = 2, c.waiting, func(r *request) int { return r.caller }
					o.Flush = func(ctx context.Context, requests []request) ([]request, error) {
						defer time.Sleep(delay) //nolint:forbidigo // the bubble's time
						return s.flush(ctx, requests)
					}
				})
				for _, delay = range c.earlier {
					if delay == 0 {
						delay = high
					}
					if _, err := g.Do(t.Context(), request{0, 0}, false); (err != nil) != (delay == fails) {
						t.Fatalf("Do = %v for a batch that takes %v", err, delay)
					}
				}
				delay = low
				before := len(s.flushed())
				requests := make([]request, 1+c.waiting)
				for i := range requests {
					requests[i] = request{i, i % 2}
				}
				if _, errs := callAll(t.Context(), g, requests...)(); errs[0] != nil {
					t.Fatal(errs)
				}
				// The first request was sent alone.
				next := s.flushed()[before+1]
				if mixed := len(next) == c.waiting; mixed != c.mixed {
					t.Errorf("the batch has %d of %d waiting requests, want all: %t", len(next), c.waiting, c.mixed)
				}
			})
		})
	}
}

// TestLatencyIgnoresLargeBatches: a large batch takes as long as the work in it.
func TestLatencyIgnoresLargeBatches(t *testing.T) {
	t.Parallel()
	const low, high = 300 * time.Microsecond, 2 * time.Millisecond
	samples := []groupcommit.Sample{{N: 16, Elapsed: low}}
	for range 100 {
		samples = append(samples, groupcommit.Sample{N: 17, Elapsed: high})
	}
	if groupcommit.LatencyIsHigh(samples...) {
		t.Error("slow large batches raised the latency")
	}
	if !groupcommit.LatencyIsHigh(groupcommit.Sample{N: 16, Elapsed: high}, groupcommit.Sample{N: 17, Elapsed: low}) {
		t.Error("a fast large batch lowered the latency")
	}
}
