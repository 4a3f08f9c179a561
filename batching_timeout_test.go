package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
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
		a := begin(t, p, leads)
		p.hang()
		first := later(func() answer { return do(t.Context(), p, op.Call(me, "first", "in"), returns("v")) })
		look := func() answer {
			_, _, err := admin.Get(t.Context(), p, "op", me, "look")
			return answer{err: err}
		}
		read := later(look)
		pass(time.Second)
		begun := time.Now()
		within := func(what string, ask func() answer, want error) <-chan answer {
			return later(func() answer {
				got := ask()
				if took := time.Since(begun); took > bound || !errors.Is(got.err, want) {
					t.Errorf("%s took %v and got %v, want %v after %v at most", what, took, got.err, want, bound)
				}
				return got
			})
		}
		waits := []<-chan answer{
			first, read,
			within("a claim", func() answer { return do(t.Context(), p, op.Call(me, "k", "in"), never(t)) }, semel.ErrUnavailable),
			within("a read", look, context.DeadlineExceeded),
			within("an end", func() answer { return answerOf(a.End("v", nil)) }, nil),
		}
		for _, w := range waits {
			<-w
		}
		p.faults.Decide(nil)
		check.Require(t, p.Close(t.Context()), "Close")
		wantState(t, mem, leads, store.Succeeded)
	})
}

// TestFullQueueRejectsTakeovers, because the function has not run yet.
func TestFullQueueRejectsTakeovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{MaxQueued: 1, RecordTimeout: time.Hour})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: time.Minute, Wait: 10 * time.Minute})
		dead := startOn(t, newFaulty(mem), semel.Options{})
		late := begin(t, dead, op.Call(me, "stale", "in"))
		dead.hang()
		follows := claim(t.Context(), p, op, "stale")
		gate := make(chan struct{})
		p.faults.Decide(failOn("Swap", fault{Gate: gate}))
		first, waits := claim(t.Context(), p, op, "first"), claim(t.Context(), p, op, "waits")
		pass(2 * time.Minute)
		select {
		case got := <-follows:
			got.wantErr(t, semel.ErrUnavailable)
		default:
			t.Error("the caller that takes over waits above the limit of waiting calls")
		}
		close(gate)
		(<-first).want(t, "first", false)
		(<-waits).want(t, "waits", false)
		dead.faults.Decide(nil)
		_, err := late.End("late", nil)
		check.NoError(t, err, "End")
	})
}

// TestFullQueueRejectsClaimsButNotEnds: the end of an attempt is never rejected.
func TestFullQueueRejectsClaimsButNotEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{MaxQueued: 1})
		op := plain("op", semel.OperationOptions[string]{})
		a := begin(t, p, op.Call(me, "leads", "in"))
		gate := make(chan struct{})
		p.faults.Decide(func(request) fault { return fault{Gate: gate} })
		first, waits := claim(t.Context(), p, op, "first"), claim(t.Context(), p, op, "waits")
		(<-claim(t.Context(), p, op, "refused")).wantErr(t, semel.ErrUnavailable)
		ended := blocked(func() answer { return answerOf(a.End("v", nil)) })
		close(gate)
		(<-first).want(t, "first", false)
		(<-waits).want(t, "waits", false)
		(<-ended).want(t, "v", false)
		wantState(t, mem, op.Call(me, "leads", "in"), store.Succeeded)
		wantState(t, mem, op.Call(me, "refused", "in"), store.Absent)
		do(t.Context(), p, op.Call(me, "refused", "in"), returns("now")).want(t, "now", false)
	})
}

// TestSilentStoreIsUnavailableForTheWholeBatch: a batch without a reply ends after
// RecordTimeout, and so do the callers behind it.
func TestSilentStoreIsUnavailableForTheWholeBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := grouped(t, memory.New(memory.Options{}), semel.Options{RecordTimeout: time.Second})
		op := plain("op", semel.OperationOptions[string]{})
		p.hang()
		began := time.Now()
		var callers []<-chan answer
		for i := range 5 {
			callers = append(callers, claim(t.Context(), p, op, fmt.Sprint(i)))
		}
		for _, c := range callers {
			(<-c).wantErr(t, semel.ErrUnavailable)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("answered after %v, want within two calls", took)
		}
		p.faults.Decide(nil)
	})
}
