package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/groupcommit"
)

func TestCanceledWaitingRequestIsNotSent(t *testing.T) {
	gated(t, nil, func(t *testing.T, s *recordingStore, g *batcher) {
		first := callAll(t.Context(), g, request{1, 0})
		ctx, cancel := context.WithCancel(t.Context())
		canceled := callAll(ctx, g, request{2, 1})
		other := callAll(t.Context(), g, request{3, 2})
		cancel()
		if _, errs := canceled(); !errors.Is(errs[0], groupcommit.ErrNotSent) || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("the canceled caller received %v, want ErrNotSent and Canceled", errs[0])
		}
		close(s.gate)
		first()
		if results, errs := other(); errs[0] != nil || results[0].caller != 2 {
			t.Errorf("the other caller received %v, %v", results[0], errs[0])
		}
		if got := fmt.Sprint(s.flushed()); got != "[[{1 0}] [{3 2}]]" {
			t.Errorf("flushed %s, want no canceled request", got)
		}
	})
}

func TestCanceledRequestInFlightDoesNotAffectOthers(t *testing.T) {
	gated(t, nil, func(t *testing.T, s *recordingStore, g *batcher) {
		first := callAll(t.Context(), g, request{1, 0})
		ctx, cancel := context.WithCancel(t.Context())
		canceled, other := callAll(ctx, g, request{2, 1}), callAll(t.Context(), g, request{3, 2})
		s.gate <- struct{}{} // settles the first request; the two others are in flight
		first()
		synctest.Wait()
		cancel()
		if _, errs := canceled(); errors.Is(errs[0], groupcommit.ErrNotSent) || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("the canceled caller received %v, want Canceled without ErrNotSent", errs[0])
		}
		close(s.gate)
		if results, errs := other(); errs[0] != nil || results[0].caller != 2 {
			t.Errorf("the other caller received %v, %v", results[0], errs[0])
		}
		check.NoError(t, g.Wait(t.Context()), "Wait")
	})
}

func TestErrorReachesTheWholeBatchOnly(t *testing.T) {
	gated(t, nil, func(t *testing.T, s *recordingStore, g *batcher) {
		failed := errors.New("failed")
		s.fail = func(requests []request) error {
			if slices.ContainsFunc(requests, func(r request) bool { return r.key == 2 }) {
				return failed
			}
			return nil
		}
		first, batch := callAll(t.Context(), g, request{1, 0}), callAll(t.Context(), g, request{2, 1}, request{3, 2})
		close(s.gate)
		if _, errs := first(); errs[0] != nil {
			t.Errorf("the earlier batch received %v", errs[0])
		}
		if _, errs := batch(); !errors.Is(errs[0], failed) || !errors.Is(errs[1], failed) {
			t.Errorf("the failed batch received %v", errs)
		}
		if got, err := g.Do(t.Context(), request{4, 3}, false); err != nil || got.caller != 3 {
			t.Errorf("a later caller received %v, %v", got, err)
		}
	})
}

func TestPanicAndGoexitSettleTheBatch(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": func() { runtime.Goexit() }} {
		t.Run(name, func(t *testing.T) {
			gated(t, func(c *config) { c.MaxBatch = 1 }, func(t *testing.T, s *recordingStore, g *batcher) {
				s.fail = func(requests []request) error {
					if requests[0].key == 2 {
						end()
					}
					return nil
				}
				wait := callAll(t.Context(), g, request{1, 0}, request{2, 1}, request{3, 2})
				close(s.gate)
				_, errs := wait()
				if errs[0] != nil || errs[1] == nil || errs[2] != nil {
					t.Errorf("callers received %v, want an error for the second only", errs)
				}
				if _, err := g.Do(t.Context(), request{4, 3}, false); err != nil {
					t.Errorf("a later caller received %v", err)
				}
			})
		})
	}
}

// TestResultCountsAfterCancel: a caller whose context ends during its own flush
// always receives the result.
func TestResultCountsAfterCancel(t *testing.T) {
	t.Parallel()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		g := newBatcher(nil, func(c *config) {
			c.Flush = func(_ context.Context, requests []request) ([]request, error) {
				cancel()
				return requests, nil
			}
		})
		if got, err := g.Do(ctx, request{1, 7}, false); err != nil || got.caller != 7 {
			t.Fatalf("Do = %v, %v, want the result", got, err)
		}
	}
}

func TestFlushHasADeadline(t *testing.T) {
	gated(t, func(c *config) { c.Timeout = time.Second }, func(t *testing.T, _ *recordingStore, g *batcher) {
		_, errs := callAll(context.Background(), g, request{1, 0}, request{2, 1})()
		for i, err := range errs {
			check.ErrorIs(t, err, context.DeadlineExceeded, "the store does not answer: caller %d received", i)
		}
	})
}

// TestWaitingRequestExpires: a request that waits behind a flush without end fails
// after Timeout. A later request expires too, at its own deadline.
func TestWaitingRequestExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, func(c *config) {
			c.Timeout, c.Flush = time.Second, func(context.Context, []request) ([]request, error) {
				<-s.gate // ignores the context
				return nil, context.Canceled
			}
		})
		first := callAll(context.Background(), g, request{1, 0})
		<-time.After(time.Second / 2)
		begun := time.Now()
		_, errs := callAll(context.Background(), g, request{2, 1}, request{3, 2})()
		for _, err := range errs {
			if !errors.Is(err, groupcommit.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a waiting caller received %v, want ErrNotSent and DeadlineExceeded", err)
			}
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the requests expired after %v, want the timeout", took)
		}
		close(s.gate)
		first()
		check.NoError(t, g.Wait(t.Context()), "Wait")
	})
}
