package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRecordTimeoutCoversTheQueue: RecordTimeout covers the whole of a claim, a
// read and an end, including the wait behind batches that a silent store does not
// answer.
func TestRecordTimeoutCoversTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound = 5 * time.Second
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{RecordTimeout: bound})
		op := plain("op", semel.OperationOptions[string]{})
		leads := op.Call(me, "leads", "in")
		a, _, err := semel.Begin(t.Context(), p, leads)
		if err != nil {
			t.Fatalf("Begin: %v", err)
		}
		p.wire.blackHole()
		first := later(func() answer { return do(t.Context(), p, op.Call(me, "first", "in"), says("v")) })
		look := func() answer {
			_, _, err := p.Get(t.Context(), "op", me, "look")
			return answer{err: err}
		}
		read := later(look)
		pass(time.Second)
		begun := time.Now()
		within := func(what string, ask func() answer, want error) <-chan answer {
			return later(func() answer {
				got := ask()
				if took := time.Since(begun); took > bound || !errors.Is(got.err, want) {
					t.Errorf("%s took %v and was told %v, want %v after %v at most", what, took, got.err, want, bound)
				}
				return got
			})
		}
		waits := []<-chan answer{
			first, read,
			within("a claim", func() answer { return do(t.Context(), p, op.Call(me, "k", "in"), never(t)) }, semel.ErrUnavailable),
			within("a read", look, context.DeadlineExceeded),
			within("an end", func() answer {
				_, err := a.End("v", nil)
				return answer{err: err}
			}, nil),
		}
		for _, w := range waits {
			<-w
		}
		p.wire.heal()
		if err := p.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
		wantState(t, mem, leads, store.Succeeded)
	})
}

// TestFullQueueRejectsTakeovers, because the function has not run yet.
func TestFullQueueRejectsTakeovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{MaxQueued: 1, RecordTimeout: time.Hour})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: time.Minute, Wait: 10 * time.Minute})
		dead := startOn(t, newWire(mem), semel.Options{})
		late, _, err := semel.Begin(t.Context(), dead, op.Call(me, "stale", "in"))
		if err != nil {
			t.Fatalf("Begin: %v", err)
		}
		dead.wire.blackHole()
		ask := func(key string) <-chan answer {
			answers := later(func() answer { return do(t.Context(), p, op.Call(me, key, "in"), says(key)) })
			synctest.Wait()
			return answers
		}
		follows := ask("stale")
		gate := make(chan struct{})
		p.wire.on(func(r request) fault {
			if r.kind == swapCall {
				return fault{gate: gate}
			}
			return fault{}
		})
		first, waits := ask("first"), ask("waits")
		pass(2 * time.Minute)
		select {
		case got := <-follows:
			got.wantErr(t, semel.ErrUnavailable)
		default:
			t.Error("who takes over waits, though too many do")
		}
		close(gate)
		(<-first).want(t, "first", false)
		(<-waits).want(t, "waits", false)
		dead.wire.heal()
		if _, err := late.End("late", nil); err != nil {
			t.Errorf("End: %v", err)
		}
	})
}
