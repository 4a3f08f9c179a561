package contest

import (
	"context"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/bench/internal/stat"
	"github.com/semelgo/semel/bench/internal/usage"
)

// Sample holds the measurements of one slot of one side.
type Sample struct {
	usage.Span

	Ops      int
	P50, P99 time.Duration
	// Tries is how often the slot was run until it was quiet or the lab gave up.
	Tries int
}

// Measure reads a number of a sample.
type Measure func(Sample) float64

// Throughput is in operations per second.
func Throughput(s Sample) float64 { return float64(s.Ops) / s.Elapsed.Seconds() }

// Median and P99 are latencies, in microseconds.
func Median(s Sample) float64 { return micros(s.P50) }

// P99 is the latency that one of a hundred operations exceeds, in microseconds.
func P99(s Sample) float64 { return micros(s.P99) }

// ServerCPU is the processor time of the servers, in microseconds per operation.
func ServerCPU(s Sample) float64 { return micros(s.Server) / float64(s.Ops) }

// ClientCPU is the processor time of this process: client and callers.
func ClientCPU(s Sample) float64 { return micros(s.Client) / float64(s.Ops) }

// CPU is the sum of both.
func CPU(s Sample) float64 { return ServerCPU(s) + ClientCPU(s) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// The phases of a slot.
const (
	warming int32 = iota
	measuring
	over
)

// slot is one side's turn: callers run in a closed loop, first to warm up, then
// measured. Operations that end during the measurement count.
func slot(ctx context.Context, side Side, callers []*Caller, server usage.Server, warm, length time.Duration) (Sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, c := range callers {
		c.took = c.took[:0]
	}
	runtime.GC() // garbage of other sides must not count here
	var phase atomic.Int32
	var running sync.WaitGroup
	for _, c := range callers {
		running.Go(func() {
			pprof.Do(ctx, pprof.Labels("side", side.Name), func(ctx context.Context) {
				if err := c.loop(ctx, side.Do, &phase); err != nil {
					cancel(err)
				}
			})
		})
	}
	span, err := measure(ctx, server, &phase, warm, length)
	phase.Store(over)
	running.Wait()
	if failed := context.Cause(ctx); failed != nil {
		return Sample{}, failed
	}
	if err != nil {
		return Sample{}, err
	}
	return sample(span, callers), nil
}

// loop calls the side until the slot is over.
func (c *Caller) loop(ctx context.Context, do func(context.Context, *Caller) error, phase *atomic.Int32) error {
	began := time.Now()
	for phase.Load() != over {
		if err := do(ctx, c); err != nil {
			return err
		}
		now := time.Now()
		if phase.Load() == measuring {
			c.took = append(c.took, now.Sub(began))
		}
		began = now
	}
	return nil
}

// measure waits until the slot is over and returns the processor time used.
func measure(ctx context.Context, server usage.Server, phase *atomic.Int32, warm, length time.Duration) (usage.Span, error) {
	if err := wait(ctx, warm); err != nil {
		return usage.Span{}, err
	}
	before, err := usage.Begin(server)
	if err != nil {
		return usage.Span{}, err
	}
	phase.Store(measuring)
	if err := wait(ctx, length); err != nil {
		return usage.Span{}, err
	}
	phase.Store(over)
	return before.End()
}

func sample(span usage.Span, callers []*Caller) Sample {
	var took []time.Duration
	for _, c := range callers {
		took = append(took, c.took...)
	}
	slices.Sort(took)
	return Sample{
		Span: span, Ops: len(took), Tries: 1,
		P50: stat.Quantile(took, 0.50), P99: stat.Quantile(took, 0.99),
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
