package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel/internal/check"
)

// joinableStore is a recordingStore whose batches other requests may join. A batch
// waits until start is closed.
type joinableStore struct {
	recordingStore

	start    chan struct{}
	failNext func() error
}

func (s *joinableStore) flushJoinable(_ context.Context, requests []request, more func() []request) ([]request, error) {
	all := slices.Clone(requests)
	<-s.start
	for joined := more(); len(joined) > 0; joined = more() {
		all = append(all, joined...)
	}
	s.mu.Lock()
	s.batches = append(s.batches, all)
	s.mu.Unlock()
	if s.failNext != nil {
		return nil, s.failNext()
	}
	return all, nil
}

// withKeys returns n requests with successive keys.
func withKeys(first, n int) (requests []request) {
	for i := range n {
		requests = append(requests, request{first + i, 0})
	}
	return requests
}

// runningBatch returns a batcher with a running batch of the keys 11 to 14, which
// waits for start. Eleven requests were pending before, so it expects eleven.
func (s *joinableStore) runningBatch(t *testing.T, maxBatch int) (*batcher, func() ([]request, []error)) {
	t.Helper()
	s.gate, s.start = make(chan struct{}), make(chan struct{})
	g := newBatcher(&s.recordingStore, func(c *config) { c.FlushJoinable, c.MaxBatch = s.flushJoinable, maxBatch })
	before := callAll(t.Context(), g, withKeys(0, 8)...)
	s.gate <- struct{}{} // the first request was sent alone
	synctest.Wait()
	first := callAll(t.Context(), g, withKeys(11, 4)...)
	s.gate <- struct{}{}
	before()
	synctest.Wait()
	s.mu.Lock()
	s.batches = nil
	s.mu.Unlock()
	return g, first
}

func TestRequestsJoinARunningBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s joinableStore
		g, first := s.runningBatch(t, 100)
		joining := callAll(t.Context(), g, request{16, 1}, request{11, 2}, request{15, 3})
		close(s.start)
		first()
		results, errs := joining()
		for i, want := range []request{{16, 1}, {11, 2}, {15, 3}} {
			if results[i] != want || errs[i] != nil {
				t.Errorf("Do(%v) = %v, %v", want, results[i], errs[i])
			}
		}
		// Key 11 is in the running batch already, so its second request waits.
		if got := fmt.Sprint(s.flushed()); got != "[[{11 0} {12 0} {13 0} {14 0} {16 1} {15 3}] [{11 2}]]" {
			t.Errorf("flushed %v, want the new keys in the running batch", got)
		}
	})
}

// TestJoiningIsLimitedToTheExpectedSize: otherwise the first callers of a batch would
// wait for as long as requests arrive.
func TestJoiningIsLimitedToTheExpectedSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ maxBatch, want int }{{100, 11}, {9, 9}} {
		synctest.Test(t, func(t *testing.T) {
			var s joinableStore
			g, first := s.runningBatch(t, test.maxBatch)
			others := callAll(t.Context(), g, withKeys(21, 20)...)
			close(s.start)
			first()
			others()
			check.Equal(t, len(s.flushed()[0]), test.want, "with MaxBatch %d the batch grew to", test.maxBatch)
		})
	}
}

// TestFailureReachesJoinedRequests covers an error and a panic of the flush.
func TestFailureReachesJoinedRequests(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("down") },
		"panic": func() error { panic("down") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s joinableStore
				g, first := s.runningBatch(t, 100)
				s.failNext = func() error { s.failNext = nil; return fail() }
				joining := callAll(t.Context(), g, request{15, 0}, request{16, 0})
				close(s.start)
				_, errs := first()
				_, joined := joining()
				for i, err := range append(errs, joined...) {
					check.Fails(t, err, "caller %d received no error", i)
				}
				close(s.gate) // the next request is sent alone
				if got, err := g.Do(t.Context(), request{11, 9}, false); err != nil || got.caller != 9 {
					t.Errorf("Do after the failure = %v, %v", got, err)
				}
			})
		})
	}
}
