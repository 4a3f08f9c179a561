package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/groupcommit"
)

func TestCanceledWaitingRequestIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, nil)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, nil)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		s := &recordingStore{gate: make(chan struct{})}
		s.fail = func(requests []request) error {
			if slices.ContainsFunc(requests, func(r request) bool { return r.key == 2 }) {
				return failed
			}
			return nil
		}
		g := newBatcher(s, nil)
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &recordingStore{gate: make(chan struct{})}
				s.fail = func(requests []request) error {
					if requests[0].key == 2 {
						end()
					}
					return nil
				}
				g := newBatcher(s, func(c *config) { c.MaxBatch = 1 })
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
