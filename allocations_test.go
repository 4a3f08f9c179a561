//go:build !race

// The race detector allocates.

package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
)

// allocations returns the number of allocations of one call of f with a new key. Tests that
// use it do not run in parallel, because allocations of other tests would count.
func allocations(t *testing.T, f func(key string)) int {
	t.Helper()
	const runs = 1000
	keys := make([]string, 0, runs+1)
	for range cap(keys) {
		keys = append(keys, newKey())
	}
	next := 0
	return int(testing.AllocsPerRun(runs, func() {
		f(keys[next])
		next++
	}))
}

// The engine's allocations over the memory store are bounded. A change that adds
// one must give a reason here.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see allocations
	ctx := t.Context()
	for name, row := range map[string]struct {
		most int
		o    semel.Options
		once bool
	}{
		// The input, the claimer with its attempt, the result, and the outcome that the store
		// keeps. The store allocates several rows at a time.
		"Do, first run":          {4, semel.Options{}, false},
		"Do, replay":             {7, semel.Options{}, true},
		"Do, replay from memory": {4, semel.Options{CacheBytes: 1 << 20}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineInMemory(t, row.o)
			one := newKey()
			got := allocations(t, func(key string) {
				if row.once {
					key = one
				}
				if _, replayed, err := semel.Do(ctx, e, payNow.Call(payer, key, paid), gives); err != nil {
					t.Errorf("Do = %v, %v", replayed, err)
				}
			})
			if got > row.most {
				t.Errorf("%d allocations, want at most %d", got, row.most)
			}
		})
	}
}
