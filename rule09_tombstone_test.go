package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRule09Tombstones: only the caller that ran the operation receives a result
// that cannot be stored; the others learn that it succeeded, and it does not run
// again.
func TestRule09Tombstones(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 300)
	for name, v := range map[string]any{
		"too large":      large,
		"too large raw":  semel.Raw(large),
		"unmarshalable":  func() {},
		"a channel":      map[string]any{"c": make(chan int)},
		"said so":        adapter.Tombstone("it was streamed"),
		"said at length": adapter.Tombstone(strings.Repeat("long ", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				mem := memory.New(memory.Options{MaxOutcome: 250})
				p := start(t, mem, semel.Options{})
				call := plain("op", d.o).Call(me, "k", "in")
				runs := 0
				fn := func(context.Context) (any, error) { runs++; return v, nil }
				if _, replayed, err := through(t.Context(), p, d, call, fn); err != nil || replayed {
					t.Errorf("the first caller got replayed %v, %v", replayed, err)
				}
				wantState(t, mem, call, store.Succeeded)
				p.seen.want(t, event.Tombstone)
				_, replayed, err := through(t.Context(), p, d, call, fn)
				if !errors.Is(err, semel.ErrResultUnavailable) || !replayed || runs != 1 {
					t.Errorf("the next caller got replayed %v, %v after %d runs, want ErrResultUnavailable after one", replayed, err, runs)
				}
				check.Equal(t, semel.VerdictOf(err), store.Committed, "VerdictOf(%v)", err)
			})
		})
	}
}

// TestRule09StoreRefusesTheResult although it promised to keep as much: the
// success is recorded all the same.
func TestRule09StoreRefusesTheResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		p.faults.Decide(func(r request) fault {
			if r.To() == store.Succeeded && strings.Contains(string(r.Changes[0].To.Outcome), "poison") {
				return fault{Result: &store.SwapResult{Err: errBoom}}
			}
			return fault{}
		})
		do(t.Context(), p, call, returns("poison")).want(t, "poison", false)
		wantState(t, p.mem, call, store.Succeeded)
		a := do(t.Context(), p, call, never(t))
		if !errors.Is(a.err, semel.ErrResultUnavailable) || !a.replayed {
			t.Errorf("an asker got replayed %v, %v, want ErrResultUnavailable", a.replayed, a.err)
		}
		p.seen.want(t, event.Tombstone)
	})
}
