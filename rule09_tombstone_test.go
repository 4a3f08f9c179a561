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
	large := strings.Repeat("x", 100)
	tests := map[string]any{
		"too large":      large,
		"too large raw":  semel.Raw(large),
		"unmarshalable":  func() {},
		"a channel":      map[string]any{"c": make(chan int)},
		"said so":        adapter.Tombstone("it was streamed"),
		"said at length": adapter.Tombstone(strings.Repeat("long ", 100)),
	}
	for name, v := range tests {
		t.Run(name, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				mem := memory.New(memory.Options{MaxOutcome: 250})
				if name == "too large" || name == "too large raw" {
					mem = memory.New(memory.Options{MaxOutcome: 64})
				}
				p := start(t, mem, semel.Options{})
				call := plain("op", d.o).Call(me, "k", "in")
				ran, replayed, err := anyThrough(t.Context(), p, d, call, v)
				if err != nil || replayed || !ran {
					t.Errorf("the first caller got replayed %v, %v", replayed, err)
				}
				wantState(t, mem, call, store.Succeeded)
				p.seen.want(t, event.Tombstone)
				ran, replayed, err = anyThrough(t.Context(), p, d, call, v)
				if !errors.Is(err, semel.ErrResultUnavailable) || !replayed || ran {
					t.Errorf("an asker got replayed %v, %v, want ErrResultUnavailable", replayed, err)
				}
				check.Equal(t, semel.VerdictOf(err), store.Committed, "VerdictOf(%v)", err)
			})
		})
	}
}

// anyThrough asks through the door for a result of any type.
func anyThrough(ctx context.Context, p *process, d entryPoint, c semel.Call, v any) (ran, replayed bool, err error) {
	fn := func(context.Context) (any, error) { ran = true; return v, nil }
	fnTx := func(ctx context.Context, _ *memory.Tx) (any, error) { return fn(ctx) }
	switch d.name {
	case "Do":
		_, replayed, err = semel.Do(ctx, p, c, fn)
	case "InTx":
		_, replayed, err = semel.Do(ctx, p, c, func(ctx context.Context) (any, error) { return semel.InTx(ctx, p.Engine, fnTx) })
	default:
		_, replayed, err = semel.DoTx(ctx, p.Engine, c, fnTx)
	}
	return ran, replayed, err
}

// TestRule09StoreRefusesTheResult although it promised to keep as much: the
// success is recorded all the same.
func TestRule09StoreRefusesTheResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		p.faults.Decide(func(r request) fault {
			if r.To() == store.Succeeded && strings.Contains(string(r.Changes[0].To.Outcome), "poison") {
				return fault{Result: &store.SwapResult{Err: errBoom}}
			}
			return fault{}
		})
		do(t.Context(), p, call, returns("poison")).want(t, "poison", false)
		wantState(t, mem, call, store.Succeeded)
		a := do(t.Context(), p, call, never(t))
		if !errors.Is(a.err, semel.ErrResultUnavailable) || !a.replayed {
			t.Errorf("an asker got replayed %v, %v, want ErrResultUnavailable", a.replayed, a.err)
		}
		p.seen.want(t, event.Tombstone)
	})
}
