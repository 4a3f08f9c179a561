package semelhttp_test

import (
	"net/http"
	"testing"

	"github.com/semelgo/semel"
)

// allocations returns what a request to h allocates, with a new key each time or
// always with the same one. Tests that call it are not parallel, because
// allocations of other tests would count.
func allocations(t *testing.T, h http.Handler, fresh bool) int {
	t.Helper()
	const runs = 1000
	s, keys := newSender(t), []string{keyNumber(0)}
	for n := int64(1); fresh && n <= runs; n++ {
		keys = append(keys, keyNumber(n))
	}
	s.send(h, keyNumber(0)) // so that all later requests are retries
	next := 0
	got := int(testing.AllocsPerRun(runs, func() {
		s.send(h, keys[next%len(keys)])
		next++
	}))
	return got
}

// What the middleware allocates above the bare handler, over the store in memory, is
// part of what it promises to be: a change that adds an allocation gives its reason here.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see allocations
	if raced {
		t.Skip("the race detector allocates")
	}
	for name, row := range map[string]struct {
		most  int
		o     semel.Options
		fresh bool
	}{
		// The state of the request, a copy of the request for the handler, a copy of
		// the response's header, and the outcome that the store keeps.
		"first run":          {15, semel.Options{}, true},
		"replay":             {15, semel.Options{}, false},
		"replay from memory": {3, inMemory(), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := allocations(t, protectedPayment(t, row.o), row.fresh) - allocations(t, payment(), false)
			if got > row.most {
				t.Errorf("%d allocations above the bare handler, want at most %d", got, row.most)
			}
		})
	}
}
