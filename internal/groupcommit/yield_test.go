package groupcommit_test

import (
	"context"
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestYieldingStopsUnderLoad checks that a batch yields a few times only when the
// processors have other work, although it yields often without such work.
func TestYieldingStopsUnderLoad(t *testing.T) {
	t.Parallel()
	busy := 2 * runtime.GOMAXPROCS(0)
	var yields atomic.Int64
	var stopped atomic.Bool
	var computing sync.WaitGroup
	defer computing.Wait()
	defer stopped.Store(true)
	for range busy {
		computing.Go(func() {
			for work := make([]byte, 1<<20); !stopped.Load(); yields.Add(1) {
				sha256.Sum256(work)
				runtime.Gosched()
			}
		})
	}
	const callers, calls = 3, 5
	s := &recordingStore{}
	g := newBatcher(s, func(c *config) {
		c.Flushers, c.ParallelAt = 2, 4
		c.Flush = func(ctx context.Context, requests []request) ([]request, error) {
			runtime.Gosched() // lets other callers enqueue
			return s.flush(ctx, requests)
		}
	})
	before := yields.Load()
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for n := range calls {
				if _, err := g.Do(t.Context(), request{callers*n + caller, 0}, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calling.Wait()
	if each := (yields.Load() - before) / int64(busy*calls); each > 15 {
		t.Errorf("other goroutines ran %d times per call, want at most 15", each)
	}
}
