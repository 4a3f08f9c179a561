package lane_test

import (
	"context"
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel/internal/lane"
)

// TestWhoComputesHoldsUpNoBatch: where the processors have other work, who waits for a
// batch waits for some turns of that work, and not for as many as bring nobody when
// there is none.
func TestWhoComputesHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	busy := 2 * runtime.GOMAXPROCS(0)
	var turns atomic.Int64
	var over atomic.Bool
	var computing sync.WaitGroup
	defer computing.Wait()
	defer over.Store(true)
	for range busy {
		computing.Go(func() {
			for work := make([]byte, 1<<20); !over.Load(); turns.Add(1) {
				sha256.Sum256(work)
				runtime.Gosched()
			}
		})
	}
	const callers, askings = 3, 5
	d := &desk{}
	l := open(d, func(c *lane.Config[int, ask, ask]) {
		c.Flushers, c.Crowd = 2, 4
		c.Flush = func(ctx context.Context, asks []ask) ([]ask, error) {
			runtime.Gosched() // meanwhile others come
			return d.flush(ctx, asks)
		}
	})
	before := turns.Load()
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for n := range askings {
				if _, err := l.Do(t.Context(), ask{callers*n + caller, 0}, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calling.Wait()
	if each := (turns.Load() - before) / int64(busy*askings); each > 15 {
		t.Errorf("others had %d turns in each asking", each)
	}
}
