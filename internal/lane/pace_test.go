package lane_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/lane"
)

// TestFewAreMoreWhereAskingTakesLong: who is left behind by others of another kind waits
// for a whole asking more. What small batches have taken lately tells how long that is.
func TestFewAreMoreWhereAskingTakesLong(t *testing.T) {
	t.Parallel()
	const near, far, fails = 300 * time.Microsecond, 2 * time.Millisecond, time.Microsecond
	always := func(d time.Duration) []time.Duration { return []time.Duration{d, d, d} }
	for name, c := range map[string]struct {
		took  []time.Duration // by small batches before
		of    int             // how many wait
		mixed bool            // they go together
	}{
		"near, few":           {always(near), 16, true},
		"near":                {always(near), 64, false},
		"far":                 {always(far), 64, true},
		"far, many":           {always(far), 66, false},
		"near once again":     {[]time.Duration{far, far, near}, 64, false},
		"near, and one stall": {[]time.Duration{near, near, time.Minute / 2}, 64, false},
		"far by and by":       {append([]time.Duration{near}, make([]time.Duration, 40)...), 64, true},
		"far, and one failed": {append(always(far), fails), 64, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var takes time.Duration
				d := &desk{fail: func([]ask) error {
					if takes == fails {
						return errors.New("down")
					}
					return nil
				}}
				l := open(d, func(o *lane.Config[int, ask, ask]) {
					o.Flushers, o.Crowd, o.Kind = 2, c.of, func(a *ask) int { return a.who }
					o.Flush = func(ctx context.Context, asks []ask) ([]ask, error) {
						defer time.Sleep(takes) //nolint:forbidigo // of the bubble's time
						return d.flush(ctx, asks)
					}
				})
				for _, takes = range c.took {
					if takes == 0 {
						takes = far
					}
					if _, err := l.Do(t.Context(), ask{0, 0}, false); (err != nil) != (takes == fails) {
						t.Fatalf("Do = %v of a batch that takes %v", err, takes)
					}
				}
				takes = near
				before := len(d.seen())
				asks := make([]ask, 1+c.of)
				for i := range asks {
					asks[i] = ask{i, i % 2}
				}
				if _, errs := crowd(t.Context(), l, asks...)(); errs[0] != nil {
					t.Fatal(errs)
				}
				// The first went alone.
				next := d.seen()[before+1]
				if mixed := len(next) == c.of; mixed != c.mixed {
					t.Errorf("of %d that wait, %d go together, want all: %t", c.of, len(next), c.mixed)
				}
			})
		})
	}
}

// TestLargeBatchesTellNothing of how far the store is: they take as long as what is done
// for them.
func TestLargeBatchesTellNothing(t *testing.T) {
	t.Parallel()
	const near, far = 300 * time.Microsecond, 2 * time.Millisecond
	batches := []lane.Took{{16, near}}
	for range 100 {
		batches = append(batches, lane.Took{N: 17, Time: far})
	}
	if lane.IsFar(batches...) {
		t.Error("it is far because large batches took long")
	}
	if !lane.IsFar(lane.Took{N: 16, Time: far}, lane.Took{N: 17, Time: near}) {
		t.Error("it is near because a large batch was quick")
	}
}
