// Package web measures what the middleware adds to a handler, with the memory
// store.
package web

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/stat"
	"github.com/semelgo/semel/bench/internal/usage"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// cost is the cost of a request.
type cost struct {
	nanos, allocs float64
	foreign       float64 // load of other processes
}

func (c cost) String() string { return fmt.Sprintf("%.0f ns, %.0f allocations", c.nanos, c.allocs) }

// side is a handler that is benchmarked on its own.
type side struct {
	name string
	// protect wraps the bare handler.
	protect func(http.Handler) (http.Handler, func(), error)
	// repeat sends the same key again and again, which is replayed. Otherwise each
	// key is new.
	repeat, replayed bool
}

// Experiments returns the experiments on HTTP.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		above("first run", side{name: "first run", protect: protected(0)},
			goal.AtMost("HTTP over memory, first run: time above the bare handler", "µs", 4, 2.5),
			goal.AtMost("HTTP over memory, first run: allocations above the bare handler", "allocations", 15, 8)),
		above("replay with local cache", side{name: "replay with local cache", protect: protected(64 << 20), repeat: true, replayed: true},
			goal.AtMost("HTTP over memory, replay with local cache: time above the bare handler", "µs", 0.6, 0.3),
			goal.AtMost("HTTP over memory, replay with local cache: allocations above the bare handler", "allocations", 6, 3)),
		above("replay without local cache", side{name: "replay without local cache", protect: protected(0), repeat: true, replayed: true},
			goal.Shown("HTTP over memory, replay without local cache: time above the bare handler", "µs"),
			goal.Shown("HTTP over memory, replay without local cache: allocations above the bare handler", "allocations")),
	}
}

// above measures what a side costs more than the bare handler.
func above(name string, s side, nanos, allocs goal.Row) lab.Experiment {
	plain := side{name: "bare", protect: unprotected, repeat: s.repeat}
	var bares, costs []cost // of all rounds so far
	found := func() []goal.Finding {
		if len(costs) == 0 {
			return nil
		}
		return []goal.Finding{
			differ(nanos.Name, bares, costs, func(c cost) float64 { return c.nanos / 1000 }, slices.Min),
			differ(allocs.Name, bares, costs, func(c cost) float64 { return c.allocs }, stat.Median),
		}
	}
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		sides := []*side{&plain, &s}
		var got [2]cost
		for _, i := range rand.Perm(2) {
			var err error
			if got[i], err = sides[i].quietly(ctx, l); err != nil {
				return found(), fmt.Errorf("%s: %w", sides[i].name, err)
			}
		}
		bares, costs = append(bares, got[0]), append(costs, got[1])
		l.Logf("http, %s, round %d: bare %s, protected %s", name, len(costs), got[0], got[1])
		return found(), nil
	}
	return lab.Experiment{Name: "http, " + name, Rows: []goal.Row{nanos, allocs}, Run: run, Spread: true}
}

// quietly benchmarks a side again while other processes use the machine, and
// returns the quietest result.
func (s *side) quietly(ctx context.Context, l *lab.Lab) (cost, error) {
	var best cost
	for try := 1; ; try++ {
		before, err := usage.Begin(usage.None)
		if err != nil {
			return cost{}, err
		}
		c, err := s.bench(l)
		if err != nil {
			return cost{}, err
		}
		span, err := before.End()
		if err != nil {
			return cost{}, err
		}
		if c.foreign = span.Foreign; try == 1 || c.foreign < best.foreign {
			best = c
		}
		if span.Quiet() || !l.Again(ctx) {
			return best, nil
		}
	}
}

// differ returns the difference, each computed over all rounds: of times the least,
// because disturbances only make a measurement slower.
func differ(row string, bares, costs []cost, of func(cost) float64, one func([]float64) float64) goal.Finding {
	less, more := make([]float64, len(costs)), make([]float64, len(costs))
	said, foreign := []string(nil), 0.0
	for i := range costs {
		less[i], more[i] = of(bares[i]), of(costs[i])
		said = append(said, fmt.Sprintf("%.3g−%.3g", of(costs[i]), of(bares[i])))
		foreign = max(foreign, bares[i].foreign, costs[i].foreign)
	}
	detail := "one goroutine, a request of 103 bytes and a response of 256; rounds: " + strings.Join(said, ", ")
	if foreign > usage.Foreign {
		detail += fmt.Sprintf("; noisy: others used up to %.0f %% of the machine, however often it was run", 100*foreign)
	}
	return goal.Finding{Row: row, Value: one(more) - one(less), Detail: detail}
}

func unprotected(h http.Handler) (http.Handler, func(), error) { return h, func() {}, nil }

// protected wraps a handler with the middleware, with a cache of n bytes and
// otherwise the defaults.
func protected(cache int) func(http.Handler) (http.Handler, func(), error) {
	return func(h http.Handler) (http.Handler, func(), error) {
		engine, err := semel.New(memory.New(memory.Options{MaxRecords: 1 << 30}), semel.Options{Survive: store.NoFailure, CacheBytes: cache})
		if err != nil {
			return nil, nil, err
		}
		op := semel.Define("create_payment", semel.OperationOptions[semelhttp.Request]{})
		scope := semel.ScopeOf("user-1000")
		protect, err := semelhttp.Middleware(engine, op, semelhttp.Options{
			ScopeFunc: func(*http.Request) (semel.Scope, error) { return scope, nil },
		})
		if err != nil {
			return nil, nil, err
		}
		return protect(h), func() { _ = engine.Close(context.Background()) }, nil
	}
}

// bench measures the cost of a request.
func (s *side) bench(l *lab.Lab) (cost, error) {
	var wrong error
	r, err := l.Benchmark(func(b *testing.B) {
		b.Helper()
		h, end, err := s.protect(bare())
		if err != nil {
			wrong = err
			b.Skip()
		}
		defer end()
		c, n := newClient(), 0
		c.send(h, key(n))
		b.ReportAllocs()
		for b.Loop() {
			if !s.repeat {
				n++
			}
			c.send(h, key(n))
		}
		wrong = errors.Join(wrong, c.check(s.replayed))
	})
	if err = errors.Join(err, wrong); err != nil {
		return cost{}, err
	}
	return cost{
		nanos:  float64(r.T.Nanoseconds()) / float64(max(r.N, 1)),
		allocs: float64(r.AllocsPerOp()),
	}, nil
}

// key has the length of a UUID, and is cheap to make.
func key(n int) string { return "8e03978e-40d5-43e8-bc93-" + strconv.Itoa(100_000_000_000+n) }
