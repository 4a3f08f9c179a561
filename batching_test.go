package semel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
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

func TestConcurrentCallsShareBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, seen := grouped(t, memory.New(memory.Options{}), semel.Options{})
		gate := make(chan struct{})
		p.faults.Decide(func(r request) fault { seen.note(r); return fault{Gate: gate} })
		for key, a := range together(t, p, plain("op", semel.OperationOptions[string]{}), gate, "a", "b", "c") {
			a.want(t, key, false)
		}
		got := seen.seen()
		if want := "[[first→InProgress] [a→InProgress b→InProgress c→InProgress"; !strings.HasPrefix(fmt.Sprint(got), want) {
			t.Errorf("requested %v, want it to start with %s", got, want)
		}
		if len(got) > 5 {
			t.Errorf("%d calls for eight changes: %v", len(got), got)
		}
	})
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

// TestCanceledCallerLeavesNoClaim, whether its claim was on its way already or not.
func TestCanceledCallerLeavesNoClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, seen := grouped(t, mem, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		gates := hold(p, seen.note, 2)
		ctx, giveUp := context.WithCancel(t.Context())
		first, sent, beside := claim(t.Context(), p, op, "first"), claim(ctx, p, op, "sent"), claim(t.Context(), p, op, "beside")
		close(gates[0])
		synctest.Wait() // the second batch is in flight, with the change of the caller that gives up
		unsent := claim(ctx, p, op, "unsent")
		giveUp()
		(<-unsent).wantErr(t, semel.ErrUnavailable, context.Canceled)
		(<-sent).wantErr(t, semel.ErrUnavailable, context.Canceled)
		close(gates[1])
		(<-first).want(t, "first", false)
		(<-beside).want(t, "beside", false)
		check.Require(t, p.Close(t.Context()), "Close")
		wantState(t, mem, op.Call(me, "sent", "in"), store.Pending)
		wantState(t, mem, op.Call(me, "unsent", "in"), store.Absent)
		if slices.ContainsFunc(seen.seen(), func(b []string) bool { return slices.Contains(b, "unsent→InProgress") }) {
			t.Errorf("requested %v, want no change of a canceled caller", seen.seen())
		}
	})
}

// TestCanceledTakeoverIsReleased: what the store made of it is waited for,
// and undone.
func TestCanceledTakeoverIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dead, mem := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Lease: time.Minute})
		call := op.Call(me, "k", "in")
		zombie := begin(t, dead, call)
		dead.crash()
		pass(2 * time.Minute)
		p, _ := grouped(t, mem, semel.Options{})
		var takeover atomic.Int32 // which batch it is in
		gates := hold(p, func(r request) {
			if slices.ContainsFunc(r.Changes, func(c store.Change) bool { return c.If.State == store.InProgress && c.To.Attempt == 2 }) {
				takeover.Store(int32(r.MethodN))
			}
		}, 4)
		ctx, giveUp := context.WithCancel(t.Context())
		first, taker := claim(t.Context(), p, op, "first"), claim(ctx, p, op, "k")
		close(gates[0])
		synctest.Wait() // its claim is on its way
		beside := claim(t.Context(), p, op, "beside")
		close(gates[1])
		synctest.Wait() // it has read the dead leader's record, and takes over
		if takeover.Load() == 0 {
			close(gates[2]) // beside was quicker
			synctest.Wait()
		}
		in := takeover.Load()
		if in == 0 {
			t.Fatal("no caller takes over")
		}
		giveUp()
		(<-taker).wantErr(t, semel.ErrUnavailable, context.Canceled)
		wantState(t, mem, call, store.InProgress)
		for _, gate := range gates[in-1:] {
			close(gate)
		}
		(<-first).want(t, "first", false)
		(<-beside).want(t, "beside", false)
		check.Require(t, p.Close(t.Context()), "Close")
		wantState(t, mem, call, store.Pending)
		do(t.Context(), start(t, mem, semel.Options{}), call, returns("again")).want(t, "again", false)
		dead.faults.Decide(nil)
		if out, err := zombie.End("late", nil); err != nil || !out.Replayed {
			t.Errorf("the dead leader came back and got %v, %v", out, err)
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
