package lane_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel/internal/lane"
)

func goexit() { runtime.Goexit() }

// TestEverybodyIsAnsweredTheirOwn lets many callers, some of whom give up, ask at
// once, and checks that no answer is another's and that keys never meet.
func TestEverybodyIsAnsweredTheirOwn(t *testing.T) {
	t.Parallel()
	for _, flushers := range []int{1, 4} {
		var flying [64]atomic.Int32
		var most atomic.Int32
		l := lane.New(lane.Config[int, ask, ask]{
			Flush: func(_ context.Context, asks []ask) ([]ask, error) {
				for _, a := range asks {
					if flying[a.key].Add(1) > 1 {
						t.Errorf("key %d is in two batches at a time", a.key)
					}
				}
				most.Store(max(most.Load(), int32(len(asks))))
				runtime.Gosched()
				for _, a := range asks {
					flying[a.key].Add(-1)
				}
				return asks, nil
			},
			Key: func(a *ask) int { return a.key }, Compare: func(a, b int) int { return a - b },
			Kind:     func(a *ask) int { return a.who % 2 },
			Flushers: flushers, Crowd: 8, MaxBatch: 32, MaxWaiting: 1000, Timeout: 1 << 40,
		})
		var all sync.WaitGroup
		for who := range 128 {
			all.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithCancel(t.Context())
					if i%7 == 0 {
						go cancel()
					}
					mine := ask{(who + i) % 64, who<<16 | i}
					if got, err := l.Do(ctx, mine, false); err == nil && got != mine {
						t.Errorf("asked %v, was answered %v", mine, got)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if err := l.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if most.Load() < 2 {
			t.Errorf("no two callers of 128 went together")
		}
	}
}
