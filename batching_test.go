package semel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// grouped starts a process over a store whose changes go together, in one batch at
// a time, and keeps the sizes of the batches.
func grouped(t *testing.T, mem *memory.Store, o semel.Options) (*process, *batches) {
	t.Helper()
	return startOn(t, limitedOver(mem, func(c *store.Capabilities) { c.ConcurrentSwaps = 1 }), o), new(batches)
}

// hold has each of the first n Swaps wait for its gate, and notes all.
func hold(p *process, note func(request), n int) []chan struct{} {
	gates := make([]chan struct{}, n)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	p.faults.Decide(func(r request) fault {
		note(r)
		if r.Method == "Swap" && r.MethodN <= n {
			return fault{Gate: gates[r.MethodN-1]}
		}
		return fault{}
	})
	return gates
}

// claim has p run key on a goroutine of its own, and returns when it waits for something.
func claim(ctx context.Context, p *process, op *semel.Operation[string], key string) <-chan answer {
	return blocked(func() answer { return do(ctx, p, op.Call(me, key, "in"), returns(key)) })
}

// batches are what a plan has seen of Swaps.
type batches struct {
	mu  sync.Mutex
	all [][]string
}

func (b *batches) note(r request) {
	var keys []string
	for _, c := range r.Changes {
		keys = append(keys, c.To.Key+"→"+c.To.State.String())
	}
	slices.Sort(keys)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, keys)
}

func (b *batches) seen() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// together has every key asked for at once, while a first call, of the key
// "first", is held up by the store until all wait.
func together(t *testing.T, p *process, op *semel.Operation[string], gate chan struct{}, keys ...string) map[string]answer {
	t.Helper()
	waits := map[string]<-chan answer{"first": claim(t.Context(), p, op, "first")}
	for _, key := range keys {
		waits[key] = claim(t.Context(), p, op, key)
	}
	close(gate)
	got := make(map[string]answer)
	for key, answers := range waits {
		got[key] = <-answers
	}
	return got
}

// TestPoisonedRecordFailsAlone: the changes of a failed batch are retried one by
// one.
func TestPoisonedRecordFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := grouped(t, memory.New(memory.Options{}), semel.Options{})
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if slices.ContainsFunc(r.Changes, func(c store.Change) bool { return c.To.Key == "poison" }) {
				return fault{Before: errCut, Gate: gate}
			}
			return fault{Gate: gate}
		})
		op := plain("op", semel.OperationOptions[string]{})
		got := together(t, p, op, gate, "a", "poison", "b")
		for _, key := range []string{"first", "a", "b"} {
			got[key].want(t, key, false)
		}
		got["poison"].wantErr(t, semel.ErrUnavailable, errCut)
	})
}

// TestBusyRecordIsKeptOutOfBatches once the store has said that it is:
// the others would wait for it each time.
func TestBusyRecordIsKeptOutOfBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, seen := grouped(t, mem, semel.Options{Wait: time.Minute})
		op := plain("op", semel.OperationOptions[string]{})
		busy := op.Call(me, "busy", "in")
		release := make(chan struct{})
		held := make(chan error, 1)
		go func() {
			_, err := mem.Atomic(t.Context(), busy.ID(), true,
				func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error) { <-release; return nil, nil })
			held <- err
		}()
		synctest.Wait()
		waits := claim(t.Context(), p, op, "busy") // the store has answered Busy
		p.faults.Decide(func(r request) fault {
			seen.note(r)
			slow := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() { close(slow) })
			return fault{Gate: slow}
		})
		for i := range 200 {
			go do(t.Context(), p, op.Call(me, fmt.Sprint("key", i), "in"), returns("v"))
			pass(time.Millisecond / 2)
		}
		close(release)
		check.Require(t, <-held, "Atomic")
		(<-waits).want(t, "busy", false)
		for _, batch := range seen.seen() {
			if len(batch) > 1 && slices.Contains(batch, "busy→InProgress") {
				t.Errorf("the busy record was in a batch with others: %v", batch)
			}
		}
	})
}

// TestHeartbeatsAreNotBatchedWithClaims: they are not part of what goes together.
func TestHeartbeatsAreNotBatchedWithClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{Lease: 3 * time.Second, RecordTimeout: time.Hour, Retention: 2 * time.Hour})
		op := plain("op", semel.OperationOptions[string]{})
		a := begin(t, p, op.Call(me, "leads", "in"))
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault {
			if r.To() == store.InProgress && r.Changes[0].If == r.Changes[0].To.Token {
				return fault{}
			}
			return fault{Gate: gate}
		})
		stuck := later(func() answer { return do(t.Context(), p, op.Call(me, "stuck", "in"), returns("stuck")) })
		pass(time.Minute)
		if err := a.Context().Err(); err != nil {
			t.Errorf("after a minute beside a batch that hangs: %v (%v), want the lease renewed", err, context.Cause(a.Context()))
		}
		close(gate)
		(<-stuck).want(t, "stuck", false)
		_, err := a.End("v", nil)
		check.NoError(t, err, "End")
	})
}

// TestCertificateIsNotBatched: the change that proves that a transaction has not
// committed is sent alone.
func TestCertificateIsNotBatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, _ := grouped(t, mem, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: time.Minute})
		stuckOp := plain("stuck", semel.OperationOptions[string]{})
		var gate chan struct{}
		var stuck <-chan answer
		got := doTx(t.Context(), p, op.Call(me, "k", "in"), func(context.Context, *memory.Tx) (string, error) {
			gate = make(chan struct{})
			p.faults.Decide(func(r request) fault {
				if len(r.Changes) > 0 && r.Changes[0].To.Operation == "stuck" {
					return fault{Gate: gate}
				}
				return fault{}
			})
			stuck = claim(t.Context(), p, stuckOp, "k")
			return "", errBoom
		})
		got.wantRunNow(t, store.NotCommitted, store.Pending)
		close(gate)
		(<-stuck).want(t, "k", false)
	})
}

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
