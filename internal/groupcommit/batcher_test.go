package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/groupcommit"
)

type (
	config  = groupcommit.Config[int, request, request]
	batcher = groupcommit.Batcher[int, request, request]
)

// request has a key and the number of the caller that sends it.
type request struct{ key, caller int }

// recordingStore records the batches that it receives and returns each request as its
// own result. If it has a gate, each flush waits for one receive from the gate.
type recordingStore struct {
	mu      sync.Mutex
	batches [][]request
	gate    chan struct{}
	fail    func(batch []request) error
}

func (s *recordingStore) flush(ctx context.Context, requests []request) ([]request, error) {
	s.mu.Lock()
	s.batches = append(s.batches, slices.Clone(requests))
	s.mu.Unlock()
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.fail != nil {
		if err := s.fail(requests); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// flushed returns the batches so far.
func (s *recordingStore) flushed() [][]request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// newBatcher returns a batcher that flushes to s, unless change sets another Flush.
func newBatcher(s *recordingStore, change func(*config)) *batcher {
	c := config{
		Flush: s.flush, Key: func(r *request) int { return r.key },
		Flushers: 1, ParallelAt: 1, MaxBatch: 100, MaxWaiting: 1000, Timeout: time.Minute,
	}
	if change != nil {
		change(&c)
	}
	return groupcommit.New(c)
}

// callAll calls Do for each request in its own goroutine, in order. The function that
// it returns waits for the results.
func callAll(ctx context.Context, g *batcher, requests ...request) (wait func() ([]request, []error)) {
	var all sync.WaitGroup
	results, errs := make([]request, len(requests)), make([]error, len(requests))
	for i, r := range requests {
		all.Go(func() { results[i], errs[i] = g.Do(ctx, r, false) })
		synctest.Wait() // keeps the order of the requests
	}
	return func() ([]request, []error) {
		all.Wait()
		return results, errs
	}
}

// gated runs test in a bubble, with a batcher whose flushes wait for the gate of its store.
func gated(t *testing.T, change func(*config), test func(t *testing.T, s *recordingStore, g *batcher)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		test(t, s, newBatcher(s, change))
	})
}

// wantOwn waits for the results of callAll, and checks that each caller received its own.
func wantOwn(t *testing.T, wait func() ([]request, []error)) {
	t.Helper()
	results, errs := wait()
	for i := range results {
		if errs[i] != nil || results[i].caller != i {
			t.Errorf("caller %d received %v, %v, want its own result", i, results[i], errs[i])
		}
	}
}

func TestLoneCallerFlushesItself(t *testing.T) {
	t.Parallel()
	type contextKey struct{}
	var value any
	ctx := context.WithValue(t.Context(), contextKey{}, "own")
	own := newBatcher(nil, func(c *config) {
		c.Flush = func(ctx context.Context, requests []request) ([]request, error) {
			value = ctx.Value(contextKey{})
			return requests, nil
		}
	})
	if _, err := own.Do(ctx, request{1, 1}, false); err != nil || value != "own" {
		t.Errorf("Flush ran with context value %v (%v), want the caller's context", value, err)
	}
	s := &recordingStore{}
	g := newBatcher(s, nil)
	for i := range 3 {
		if got, err := g.Do(t.Context(), request{1, i}, false); err != nil || got.caller != i {
			t.Errorf("Do = %v, %v, want the result of caller %d", got, err, i)
		}
	}
	if got := s.flushed(); len(got) != 3 {
		t.Errorf("flushed %v, want each request alone", got)
	}
}

func TestWaitingRequestsShareABatch(t *testing.T) {
	gated(t, nil, func(t *testing.T, s *recordingStore, g *batcher) {
		wait := callAll(t.Context(), g, request{5, 0}, request{9, 1}, request{3, 2}, request{7, 3})
		close(s.gate)
		wantOwn(t, wait)
		want := "[[{5 0}] [{9 1} {3 2} {7 3}]]"
		if got := fmt.Sprint(s.flushed()); got != want {
			t.Errorf("flushed %s, want %s: the first alone, the others in one batch", got, want)
		}
	})
}

// TestFlushingContinuesAfterALargeBatch: the first caller that returns must not send
// its next request alone, because the others would wait for it.
func TestFlushingContinuesAfterALargeBatch(t *testing.T) {
	t.Parallel()
	g := newBatcher(&recordingStore{}, nil)
	_, single, _, _ := g.Enqueue(request{1, 0}, false)
	for key := range 3 {
		if _, _, start, err := g.Enqueue(request{2 + key, 0}, false); start || err != nil {
			t.Fatalf("Enqueue = %v, %v, want the request to wait", start, err)
		}
	}
	g.Settle(single, []request{{}}, nil)
	several := g.Take()
	if more := g.Settle(several, several.Requests, nil); !more {
		t.Error("flushing ended after a batch of several requests")
	}
	if _, first, start, err := g.Enqueue(request{2, 1}, false); first != nil || start || err != nil {
		t.Errorf("the next request got %v, %v, %v, want it to wait", first, start, err)
	}
	one := g.Take()
	if more := g.Settle(one, one.Requests, nil); more {
		t.Error("flushing continues after a batch of one request, although none waits")
	}
	if _, next, _, err := g.Enqueue(request{3, 1}, false); next == nil || err != nil {
		t.Errorf("the next request got %v, %v, want its own batch", next, err)
	}
}

func TestKeyIsInOneRunningBatch(t *testing.T) {
	gated(t, func(c *config) { c.Flushers = 4 }, func(t *testing.T, s *recordingStore, g *batcher) {
		wait := callAll(t.Context(), g, request{1, 0}, request{1, 1}, request{2, 2}, request{1, 3})
		if got := fmt.Sprint(s.flushed()); got != "[[{1 0}] [{2 2}]]" {
			t.Errorf("running: %s, want key 1 once and key 2", got)
		}
		close(s.gate)
		wantOwn(t, wait)
		if got := fmt.Sprint(s.flushed()[2:]); got != "[[{1 1}] [{1 3}]]" {
			t.Errorf("then flushed %s, want the other requests of key 1 one after the other", got)
		}
	})
}

func TestManyRequestsOfOneKeyDoNotDelayOthers(t *testing.T) {
	gated(t, nil, func(t *testing.T, s *recordingStore, g *batcher) {
		wait := callAll(t.Context(), g, request{1, 0}, request{2, 1}, request{2, 2}, request{2, 3}, request{3, 4})
		close(s.gate)
		if _, errs := wait(); errors.Join(errs...) != nil {
			t.Errorf("the callers received %v", errs)
		}
		if got := fmt.Sprint(s.flushed()); got != "[[{1 0}] [{2 1} {3 4}] [{2 2}] [{2 3}]]" {
			t.Errorf("flushed %s, want key 3 in the first batch after the running one", got)
		}
	})
}

func TestSharedRequestsOfOneKeyShareAResult(t *testing.T) {
	gated(t, func(c *config) { c.Shared = true }, func(t *testing.T, s *recordingStore, g *batcher) {
		wait := callAll(t.Context(), g, request{1, 0}, request{2, 1}, request{1, 2}, request{2, 3}, request{1, 4})
		close(s.gate)
		results, errs := wait()
		for i, key := range []int{1, 2, 1, 2, 1} {
			if errs[i] != nil || results[i].key != key {
				t.Errorf("caller %d received %v, %v, want key %d", i, results[i], errs[i], key)
			}
		}
		if got := fmt.Sprint(s.flushed()); got != "[[{1 0}] [{2 1} {1 2}]]" {
			t.Errorf("flushed %s, want each key of a batch once", got)
		}
	})
}

func TestFullBatcherRejectsUnforcedRequests(t *testing.T) {
	gated(t, func(c *config) { c.MaxWaiting = 2 }, func(t *testing.T, s *recordingStore, g *batcher) {
		wait := callAll(t.Context(), g, request{1, 0}, request{2, 1}, request{3, 2})
		if _, err := g.Do(t.Context(), request{4, 3}, false); !errors.Is(err, groupcommit.ErrFull) {
			t.Errorf("the third waiting request got %v, want ErrFull", err)
		}
		var forced sync.WaitGroup
		forced.Go(func() {
			if _, err := g.Do(t.Context(), request{5, 4}, true); err != nil {
				t.Errorf("the forced request got %v", err)
			}
		})
		synctest.Wait()
		close(s.gate)
		forced.Wait()
		if _, errs := wait(); errors.Join(errs...) != nil {
			t.Errorf("the waiting requests got %v", errs)
		}
	})
}

// TestSecondBatchStartsAtParallelAt, and not before.
func TestSecondBatchStartsAtParallelAt(t *testing.T) {
	gated(t, func(c *config) { c.Flushers, c.ParallelAt = 2, 3 }, func(t *testing.T, s *recordingStore, g *batcher) {
		few := callAll(t.Context(), g, request{1, 0}, request{2, 1}, request{3, 2})
		check.Equal(t, len(s.flushed()), 1, "batches run while two requests wait")
		more := callAll(t.Context(), g, request{4, 3}, request{5, 4}, request{6, 5}, request{7, 6})
		if got := fmt.Sprint(s.flushed()); got != "[[{1 0}] [{2 1} {3 2} {4 3}]]" {
			t.Errorf("once three requests wait, the batches %s run, want a second batch and no third", got)
		}
		close(s.gate)
		few()
		more()
	})
}
