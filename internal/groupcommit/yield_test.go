package groupcommit_test

import (
	"context"
	"crypto/sha256"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestYieldingStopsUnderLoad checks that a batch yields a few times only when the
// processors have other work, although it yields often without such work. If the machine
// stalls one processor, the others yield more meanwhile, but never less. So the quietest of
// a few runs counts.
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
	each := int64(math.MaxInt64)
	for run := 0; run < 5 && each > 15; run++ {
		before := yields.Load()
		calls := callsUnderLoad(t)
		each = min(each, (yields.Load()-before)/int64(busy*calls))
	}
	if each > 15 {
		t.Errorf("other goroutines ran %d times per call, want at most 15", each)
	}
}

// callsUnderLoad has a few callers call one after another, and returns how often each calls.
func callsUnderLoad(t *testing.T) int {
	t.Helper()
	const callers, calls = 3, 5
	s := &recordingStore{}
	g := newBatcher(s, func(c *config) {
		c.Flushers, c.ParallelAt = 2, 4
		c.Flush = func(ctx context.Context, requests []request) ([]request, error) {
			runtime.Gosched() // lets other callers enqueue
			return s.flush(ctx, requests)
		}
	})
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
	return calls
}

// manualScheduler runs functions only while a caller waits.
type manualScheduler struct{ queue []func() }

func (m *manualScheduler) Go(_ string, f func()) { m.queue = append(m.queue, f) }

func (m *manualScheduler) Wait(_ context.Context, _ any, settled func() bool) {
	for !settled() && len(m.queue) > 0 {
		f := m.queue[0]
		m.queue = m.queue[1:]
		f()
	}
}

// TestSchedulerDecidesWhenBatchesRun: without it, no batch is flushed.
func TestSchedulerDecidesWhenBatchesRun(t *testing.T) {
	t.Parallel()
	s, scheduler := &recordingStore{}, &manualScheduler{}
	g := newBatcher(s, func(c *config) { c.Scheduler = scheduler })
	_, single, _, err := g.Enqueue(request{1, 0}, false)
	if err != nil || single == nil {
		t.Fatalf("Enqueue = %v, %v, want its own batch", single, err)
	}
	second, _, _, _ := g.Enqueue(request{2, 1}, false)
	if more := g.Settle(single, []request{{1, 0}}, nil); !more || second.Settled() {
		t.Errorf("after the first batch: more %v, second item settled %v", more, second.Settled())
	}
	scheduler.Go("flush", func() { b := g.Take(); g.Settle(b, b.Requests, nil) })
	if len(s.flushed()) != 0 || second.Settled() {
		t.Error("a batch ran without the scheduler")
	}
	if got, err := g.Do(t.Context(), request{3, 2}, false); err != nil || got.caller != 2 || !second.Settled() {
		t.Errorf("Do = %v, %v, second item settled: %v", got, err, second.Settled())
	}
}
