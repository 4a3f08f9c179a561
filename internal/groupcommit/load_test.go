package groupcommit_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/groupcommit"
)

// TestEachCallerReceivesItsOwnResult runs many concurrent callers, and cancels some of
// them. It checks that each result belongs to its request, and that no key is in two
// running batches.
func TestEachCallerReceivesItsOwnResult(t *testing.T) {
	t.Parallel()
	for _, flushers := range []int{1, 4} {
		var inflight [64]atomic.Int32
		var largest atomic.Int32
		g := groupcommit.New(config{
			Flush: func(_ context.Context, requests []request) ([]request, error) {
				for _, r := range requests {
					if inflight[r.key].Add(1) > 1 {
						t.Errorf("key %d is in two running batches", r.key)
					}
				}
				largest.Store(max(largest.Load(), int32(len(requests))))
				runtime.Gosched()
				for _, r := range requests {
					inflight[r.key].Add(-1)
				}
				return requests, nil
			},
			Key:      func(r *request) int { return r.key },
			Flushers: flushers, ParallelAt: 8, MaxBatch: 32, MaxWaiting: 1000, Timeout: 1 << 40,
		})
		var all sync.WaitGroup
		for caller := range 128 {
			all.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithCancel(t.Context())
					if i%7 == 0 {
						go cancel()
					}
					own := request{(caller + i) % 64, caller<<16 | i}
					if got, err := g.Do(ctx, own, false); err == nil && got != own {
						t.Errorf("Do(%v) = %v, want its own result", own, got)
					}
					cancel()
				}
			})
		}
		all.Wait()
		check.NoError(t, g.Wait(t.Context()), "Wait")
		if largest.Load() < 2 {
			t.Errorf("128 callers never shared a batch")
		}
	}
}
