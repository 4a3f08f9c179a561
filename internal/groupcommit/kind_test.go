package groupcommit_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// batchKinds enqueues the requests while a batch of the first request runs. The kind
// of a request is its caller. It returns, for each later batch, the number of requests
// of each kind.
func batchKinds(t *testing.T, flushers int, first request, requests []request) [][]int {
	t.Helper()
	s := &recordingStore{gate: make(chan struct{})}
	g := newBatcher(s, func(c *config) {
		c.Kind, c.Flushers, c.ParallelAt = func(r *request) int { return r.caller }, flushers, len(requests)
	})
	wait := callAll(t.Context(), g, append([]request{first}, requests...)...)
	close(s.gate)
	results, errs := wait()
	for i, r := range append([]request{first}, requests...) {
		if results[i] != r || errs[i] != nil {
			t.Errorf("Do(%v) = %v, %v", r, results[i], errs[i])
		}
	}
	var all [][]int
	for _, b := range s.flushed()[1:] {
		n := make([]int, 2)
		for _, r := range b {
			n[r.caller]++
		}
		all = append(all, n)
	}
	return all
}

// ofKind returns n requests of a kind, with consecutive keys from key.
func ofKind(kind, key, n int) (requests []request) {
	for i := range n {
		requests = append(requests, request{key + i, kind})
	}
	return requests
}

func TestLargeBatchHasOneKind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		requests []request
		want     [][]int
	}{
		{"half", slices.Concat(ofKind(1, 100, 10), ofKind(0, 200, 10)), [][]int{{0, 10}, {10, 0}}},
		{"the first and later ones", slices.Concat(ofKind(1, 100, 1), ofKind(0, 200, 10), ofKind(1, 300, 10)), [][]int{{0, 11}, {10, 0}}},
		{"a third", slices.Concat(ofKind(1, 100, 6), ofKind(0, 200, 12)), [][]int{{0, 6}, {12, 0}}},
		{"fewer than a third", slices.Concat(ofKind(1, 100, 6), ofKind(0, 200, 13)), [][]int{{13, 6}}},
		{"few", slices.Concat(ofKind(1, 100, 8), ofKind(0, 200, 8)), [][]int{{8, 8}}},
		{"all", ofKind(1, 100, 20), [][]int{{0, 20}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if got := batchKinds(t, 1, request{1, 0}, test.requests); !slices.EqualFunc(got, test.want, slices.Equal) {
					t.Errorf("kinds per batch: %v, want %v", got, test.want)
				}
			})
		})
	}
}

// TestRequestIsSkippedOnce, however many requests of the other kind arrive.
func TestRequestIsSkippedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &recordingStore{gate: make(chan struct{})}
		g := newBatcher(s, func(c *config) { c.Kind = func(r *request) int { return r.caller } })
		waits := []func() ([]request, []error){callAll(t.Context(), g, request{1, 0})}
		enqueue := func(requests ...request) { waits = append(waits, callAll(t.Context(), g, requests...)) }
		enqueue(slices.Concat(ofKind(0, 100, 20), ofKind(1, 200, 2))...)
		s.gate <- struct{}{} // settles the first request; the second batch skips kind 1
		synctest.Wait()
		enqueue(ofKind(0, 300, 100)...)
		close(s.gate)
		for _, wait := range waits {
			wait()
		}
		got := s.flushed()
		if len(got) < 3 || !slices.Contains(got[2], request{200, 1}) || !slices.Contains(got[2], request{201, 1}) {
			t.Errorf("the third batch lacks requests that the second one skipped: %v", got)
		}
	})
}

// TestKindWithKeyInFlightDoesNotBlock: the oldest requests cannot be sent because
// their key is in a running batch.
func TestKindWithKeyInFlightDoesNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, started := make(chan struct{}), false
		s := &recordingStore{}
		g := newBatcher(s, func(c *config) {
			c.Kind, c.Flushers, c.ParallelAt = func(r *request) int { return r.caller }, 2, 19
			c.Flush = func(ctx context.Context, requests []request) ([]request, error) {
				if !started {
					started = true
					<-gate
				}
				return s.flush(ctx, requests)
			}
		})
		blocked := callAll(t.Context(), g, slices.Repeat([]request{{1, 0}}, 11)...)
		others := callAll(t.Context(), g, ofKind(1, 100, 9)...)
		if got := s.flushed(); len(got) != 1 || len(got[0]) != 9 {
			t.Errorf("flushed %v while key 1 is in flight, want the nine other requests", got)
		}
		close(gate)
		blocked()
		others()
	})
}

// TestManyRequestsOfOneKeyDoNotDelayOthers: requests of one key are sent one by one,
// and the first of them is always the oldest request.
func TestManyRequestsOfOneKeyDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := batchKinds(t, 1, request{1, 0}, slices.Concat(slices.Repeat([]request{{100, 0}}, 40), ofKind(1, 200, 20)))
		if len(got) < 2 || got[0][1]+got[1][1] != 20 {
			t.Errorf("kinds per batch: %v, want all 20 requests of the other kind in the first two batches", got)
		}
	})
}

// TestRequestInFlightDoesNotChooseTheKind: the oldest request cannot be sent because
// its key is in a running batch.
func TestRequestInFlightDoesNotChooseTheKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := &recordingStore{}
		g := newBatcher(s, func(c *config) {
			c.Kind, c.Flushers, c.ParallelAt = func(r *request) int { return r.caller }, 2, 24
			c.Flush = func(ctx context.Context, requests []request) ([]request, error) {
				if requests[0].key == 1 {
					<-gate
				}
				return s.flush(ctx, requests)
			}
		})
		blocked := callAll(t.Context(), g, request{1, 0}, request{1, 0})
		others := callAll(t.Context(), g, slices.Concat(ofKind(1, 200, 10), ofKind(0, 100, 13))...)
		if got := s.flushed(); len(got) == 0 || got[0][0].caller != 1 {
			t.Errorf("flushed %v, want the kind of the oldest request that can be sent", got)
		}
		close(gate)
		blocked()
		others()
	})
}
