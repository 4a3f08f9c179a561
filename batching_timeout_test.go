package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
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
		a, _, err := adapter.Begin(t.Context(), p, leads)
		check.Require(t, err, "Begin")
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
			within("an end", func() answer {
				_, err := a.End("v", nil)
				return answer{err: err}
			}, nil),
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
		late, _, err := adapter.Begin(t.Context(), dead, op.Call(me, "stale", "in"))
		check.Require(t, err, "Begin")
		dead.hang()
		ask := func(key string) <-chan answer {
			answers := later(func() answer { return do(t.Context(), p, op.Call(me, key, "in"), returns(key)) })
			synctest.Wait()
			return answers
		}
		follows := ask("stale")
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" {
				return fault{Gate: gate}
			}
			return fault{}
		})
		first, waits := ask("first"), ask("waits")
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
		if _, err := late.End("late", nil); err != nil {
			t.Errorf("End: %v", err)
		}
	})
}

// TestFullQueueRejectsClaimsButNotEnds: the end of an attempt is never rejected.
func TestFullQueueRejectsClaimsButNotEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{MaxQueued: 1})
		op := plain("op", semel.OperationOptions[string]{})
		a, _, err := adapter.Begin(t.Context(), p, op.Call(me, "leads", "in"))
		check.Require(t, err, "Begin")
		gate := make(chan struct{})
		p.faults.Decide(func(request) fault { return fault{Gate: gate} })
		ask := func(key string) <-chan answer {
			answers := later(func() answer { return do(t.Context(), p, op.Call(me, key, "in"), returns(key)) })
			synctest.Wait()
			return answers
		}
		first, waits := ask("first"), ask("waits")
		(<-ask("refused")).wantErr(t, semel.ErrUnavailable)
		ended := later(func() answer {
			_, err := a.End("v", nil)
			return answer{err: err}
		})
		synctest.Wait()
		close(gate)
		(<-first).want(t, "first", false)
		(<-waits).want(t, "waits", false)
		if got := <-ended; got.err != nil {
			t.Errorf("End: %v", got.err)
		}
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
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				do(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), never(t)).wantErr(t, semel.ErrUnavailable)
			})
		}
		all.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("answered after %v, want within two calls", took)
		}
		p.faults.Decide(nil)
	})
}
