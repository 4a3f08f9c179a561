package contest_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
)

func newLab(t *testing.T) (*lab.Lab, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	l, err := lab.New(&said, true)
	if err != nil {
		t.Fatal(err)
	}
	l.Patience = 0 // other load does not matter here
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, &said
}

// waits is a side whose operation takes as long, and counts how many at most are
// under way.
func waits(d time.Duration, most *atomic.Int32) func(context.Context, *contest.Caller) error {
	var now atomic.Int32
	return func(ctx context.Context, _ *contest.Caller) error {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestEachSideHasItsTurnInEachRound, with as many callers as there are to be, and
// what took longer was seen to. The clock of a bubble moves only while all callers
// wait, so operations end within their slot however slow the machine is.
func TestEachSideHasItsTurnInEachRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, said := newLab(t)
		var most, other atomic.Int32
		turns := make(map[string]int)
		c := contest.Contest{
			Name: "waiting", Callers: 5, Rounds: 2, Slot: 50 * time.Millisecond,
			Sides: []contest.Side{{Name: "short", Do: waits(time.Millisecond, &most)}, {Name: "long", Do: waits(10*time.Millisecond, &other)}},
			Before: func(_ context.Context, side string) error {
				turns[side]++
				return nil
			},
		}
		o, err := c.Run(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Rounds) != 2 || turns["short"] < 2 || turns["long"] < 2 {
			t.Errorf("%d rounds, turns %v; want 2 of each", len(o.Rounds), turns)
		}
		if most.Load() != 5 || other.Load() != 5 {
			t.Errorf("at most %d and %d at the same time, want 5", most.Load(), other.Load())
		}
		for i, round := range o.Rounds {
			long := round["long"]
			if long.P50 < 10*time.Millisecond || long.P99 < long.P50 || long.Ops == 0 || long.Elapsed < 50*time.Millisecond {
				t.Errorf("round %d: %+v of what takes 10 ms", i+1, long)
			}
		}
		if got := strings.Count(said.String(), "waiting, round "); got != 2 {
			t.Errorf("it said %d times how far it is, want 2:\n%s", got, said)
		}
	})
}

// TestFailureOfACallerEndsTheContest, and says whose it was.
func TestFailureOfACallerEndsTheContest(t *testing.T) {
	t.Parallel()
	l, _ := newLab(t)
	broken := errors.New("broken")
	c := contest.Contest{Name: "failing", Callers: 3, Sides: []contest.Side{{
		Name: "bad", Do: func(ctx context.Context, c *contest.Caller) error {
			if c.N == 2 {
				return broken
			}
			<-ctx.Done() // the others are broken off
			return nil
		},
	}}}
	if _, err := c.Run(t.Context(), l); !errors.Is(err, broken) || !strings.Contains(err.Error(), "failing, bad") {
		t.Errorf("Run = %v, want %v of failing, bad", err, broken)
	}
}

// TestASideThatDoesNothingIsNoSide: it would be infinitely slow, or fast. On the
// clock of a bubble, the operation ends after the slot in any case.
func TestASideThatDoesNothingIsNoSide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLab(t)
		var most atomic.Int32
		c := contest.Contest{
			Name: "idle", Callers: 1, Rounds: 1, Slot: 10 * time.Millisecond,
			Sides: []contest.Side{{Name: "slow", Do: waits(time.Second, &most)}},
		}
		if _, err := c.Run(t.Context(), l); err == nil {
			t.Error("a side that ended nothing has a throughput")
		}
	})
}

// TestKeysAreUUIDs of version 4, and no caller's come twice.
func TestKeysAreUUIDs(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	keys, err := contest.Once(t.Context(), 50, func(_ context.Context, c *contest.Caller) ([]string, error) {
		return []string{c.Key(), c.Key()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, two := range keys {
		for _, key := range two {
			if !form.MatchString(key) || seen[key] {
				t.Errorf("key %q, seen before: %t", key, seen[key])
			}
			seen[key] = true
		}
	}
}
