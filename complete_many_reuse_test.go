package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// TestCompletionCanBeReused: a reused Completion keeps nothing of its earlier
// attempt.
func TestCompletionCanBeReused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{}})
		p, _ := owned(t, op)
		if _, err := semel.Enqueue(t.Context(), p, op.Call(me, "first", "in"), semel.EnqueueOptions{Priority: 4}); err != nil {
			t.Fatal(err)
		}
		ending := new(adapter.Completion)
		for _, a := range []*semel.Attempt{dequeued(t, p, op, 1)[0], begin(t, p, op.Call(me, "second", "in"))} {
			ending.Attempt, ending.Value = a, a.Call().Key()
			want := a.Record().Priority
			if rest := adapter.CompleteMany(t.Context(), p, []*adapter.Completion{ending}); len(rest) > 0 {
				t.Fatal("it is not settled")
			}
			if got := ending.Outcome.Record.Priority; got != want {
				t.Errorf("%s has priority %d, want %d", a.Call().Key(), got, want)
			}
		}
	})
}
