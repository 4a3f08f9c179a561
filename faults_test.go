package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// failCall makes the k-th call of the store fail with f, and all others succeed.
func failCall(k int, f fault) func(request) fault {
	n := 0
	return func(request) fault {
		if n++; n == k {
			return f
		}
		return fault{}
	}
}

// failWriteCall is failCall, except that reads are never Busy or rejected, as in
// real stores.
func failWriteCall(k int, f fault) func(request) fault {
	n := failCall(k, f)
	return func(r request) fault {
		f := n(r)
		if r.Method == "Get" {
			f.Busy, f.Result = false, nil
		}
		return f
	}
}

// everyFault is every way in which one call can go wrong.
func everyFault() map[string]fault {
	return map[string]fault{
		"cut before it applied":   {Before: errCut},
		"cut after it applied":    {After: errCut},
		"no answer, not applied":  {Hang: true},
		"no answer, applied":      {Mute: true},
		"answer and error":        {Extra: errCut},
		"busy":                    {Busy: true},
		"refused":                 {Result: &store.SwapResult{Err: errCut}},
		"run twice":               {Twice: true},
		"transaction still going": commitDropped(),
	}
}

// faultRun is one operation, run through one entry point, while one call fails.
type faultRun struct {
	d    entryPoint
	p    *process
	mem  *memory.Store
	call semel.Call
	f    fault
	runs int
}

// effect leaves an effect of this run: in the transaction where there is one,
// else at once.
func (tr *faultRun) effect(ctx context.Context) (string, error) {
	tr.runs++
	if tx, ok := semel.TxOf(ctx, tr.p.Engine); ok {
		return "v", tx.Put(fmt.Sprint("e", tr.runs), nil)
	}
	return "v", inTxOf(tr.mem, fmt.Sprint("e", tr.runs))
}

// inTxOf leaves an effect in a transaction of its own.
func inTxOf(mem *memory.Store, name string) error {
	_, err := mem.Atomic(context.Background(), store.ID{}, false,
		func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			return nil, tx.Put(name, nil)
		})
	return err
}

func (tr *faultRun) effects() int {
	n := 0
	for i := range tr.runs {
		if _, ok := tr.mem.Value(fmt.Sprint("e", i+1)); ok {
			n++
		}
	}
	return n
}

// first asks with the patience of a minute: a transaction that cannot even begin
// is waited for as long as its caller waits.
func (tr *faultRun) first(t *testing.T, fn handler) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return tr.d.ask(ctx, tr.p, tr.call, fn)
}

// retry asks in another process until the answer is final, as patient callers do.
func (tr *faultRun) retry(t *testing.T, fn handler) answer {
	t.Helper()
	first := tr.p
	tr.p = start(t, tr.mem, semel.Options{})
	defer func() { tr.p = first }()
	for range 20 {
		a := tr.d.ask(t.Context(), tr.p, tr.call, fn)
		if !errors.Is(a.err, semel.ErrInProgress) && !errors.Is(a.err, semel.ErrUnavailable) {
			return a
		}
		pass(lease)
	}
	t.Error("asking again leads to nothing")
	return answer{}
}

// eachTrial runs test for each entry point, each fault, and each call that may meet it.
func eachTrial(t *testing.T, test func(t *testing.T, tr *faultRun)) {
	t.Helper()
	eachPair(t, entryPoints(), everyFault(), func(t *testing.T, d entryPoint, f fault) {
		for k := range 5 {
			t.Logf("call %d fails", k+1)
			p, mem := solo(t, semel.Options{})
			p.faults.Decide(failCall(k+1, f))
			test(t, &faultRun{d: d, p: p, mem: mem, call: plain("op", d.o).Call(me, "k", "in"), f: f})
		}
	})
}

// TestEveryStoreCallMayFail: every reported answer stays true, there is one
// effect, and a retry returns it.
func TestEveryStoreCallMayFail(t *testing.T) {
	eachTrial(t, func(t *testing.T, tr *faultRun) {
		first := tr.first(t, tr.effect)
		verdict, there := semel.VerdictOf(first.err), tr.effects()
		if first.err == nil {
			first.want(t, "v", false)
		}
		if verdict == store.Committed && there != 1 || verdict == store.NotCommitted && there != 0 {
			t.Errorf("verdict %v (%v) with %d effects", verdict, first.err, there)
		}
		if failure, ok := errtype.Find[*semel.Failure](first.err); ok {
			t.Errorf("got the failure %v", failure)
		}
		tr.p.faults.Decide(nil)
		pass(time.Minute)
		last := tr.retry(t, tr.effect)
		if refused := tr.f.Result != nil && errors.Is(last.err, semel.ErrResultUnavailable); !refused {
			last.want(t, "v", last.replayed)
		}
		if first.err == nil && !last.replayed {
			t.Error("a reported success was run again")
		}
		check.Equal(t, tr.effects(), 1, "effects")
		wantState(t, tr.mem, tr.call, store.Succeeded)
	})
}

// TestEveryStoreCallOfAFailureMayFail: a failure is reported only after it has
// been recorded, and then forever.
func TestEveryStoreCallOfAFailureMayFail(t *testing.T) {
	eachTrial(t, func(t *testing.T, tr *faultRun) {
		fn := fails(semel.Final(errBoom))
		first := tr.first(t, fn)
		if _, isFailure := errtype.Find[*semel.Failure](first.err); isFailure {
			wantState(t, tr.mem, tr.call, store.Failed)
		}
		check.Fails(t, first.err, "got success")
		tr.p.faults.Decide(nil)
		pass(time.Minute)
		tr.retry(t, fn).wantFailure(t, "boom")
		wantState(t, tr.mem, tr.call, store.Failed)
	})
}

// queueRun is one call from its queue to its end, by workers, while one call of the
// store goes wrong.
type queueRun struct {
	faultRun
	op      *semel.Operation[string]
	answers []answer
}

// round lets a worker work once: claim, beat, run, and end as batch says.
func (e *queueRun) round(t *testing.T, p *process, batch bool) {
	t.Helper()
	e.p = p
	attempts, err := adapter.Dequeue(t.Context(), p, e.op, 2)
	if err != nil && !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("Dequeue: %v", err)
	}
	for _, a := range attempts {
		if out, err := a.Prepare(); out != nil || err != nil {
			e.answers = append(e.answers, answerOf(out, err))
			continue
		}
		adapter.RenewLeases(t.Context(), p, attempts)
		v, err := p.run(e.effect)(a.Context())
		end := &adapter.Completion{Attempt: a, Value: v, Err: err}
		if batch && len(adapter.CompleteMany(t.Context(), p, []*adapter.Completion{end})) == 0 {
			e.answers = append(e.answers, answerOf(end.Outcome, end.EndErr))
			continue
		}
		e.answers = append(e.answers, answerOf(a.End(v, err)))
	}
}

// TestEveryStoreCallOfAQueueMayFail lets each store call fail once. Every enqueued
// call is run to its end; its effect happens once if the policy guarantees that,
// answers stay true, and no lease blocks a record.
func TestEveryStoreCallOfAQueueMayFail(t *testing.T) {
	type row struct {
		policy       semel.Policy
		hands, batch bool
	}
	rows := map[string]row{}
	for _, policy := range []semel.Policy{semel.Atomic(), semel.AtLeastOnce()} {
		for n := range 4 {
			r := row{policy, n&1 > 0, n&2 > 0}
			rows[fmt.Sprintf("%v/hands %v/batch %v", policy, r.hands, r.batch)] = r
		}
	}
	eachPair(t, rows, everyFault(), func(t *testing.T, r row, f fault) {
		for k := range 8 {
			t.Logf("call %d fails", k+1)
			testQueueFault(t, r.policy, r.hands, r.batch, f, k+1)
		}
	})
}

func testQueueFault(t *testing.T, policy semel.Policy, hands, batch bool, f fault, k int) {
	t.Helper()
	inTx := policy.String() == "Atomic"
	e := &queueRun{faultRun: faultRun{mem: memory.New(memory.Options{})}, op: plain("op", semel.OperationOptions[string]{Policy: policy, Retry: steady(9, 2)})}
	e.call = e.op.Call(me, "k", "in")
	o := semel.Options{Operations: []semel.Declared{e.op}}
	p, other := startQueue(t, newFaulty(e.mem), o, hands), startQueue(t, newFaulty(e.mem), o, hands)
	p.faults.Decide(failWriteCall(k, f))
	added, err := semel.Enqueue(t.Context(), p, e.call, semel.EnqueueOptions{})
	check.Equal(t, added, err == nil, "Enqueue: %v", err)
	for range 3 {
		e.round(t, p, batch)
		pass(time.Second)
	}
	for _, a := range e.answers {
		if verdict := semel.VerdictOf(a.err); verdict == store.Committed && e.effects() != 1 || inTx && e.effects() > 1 {
			t.Errorf("got %q, %v with %d effects there", a.v, a.err, e.effects())
		}
	}
	p.faults.Decide(nil)
	_, _ = semel.Enqueue(t.Context(), other, e.call, semel.EnqueueOptions{})
	for range 20 {
		pass(lease)
		_, _ = admin.Sweep(t.Context(), other, 10)
		e.round(t, other, batch)
		if record(t, e.mem, e.call).State.Final() {
			break
		}
	}
	r := wantState(t, e.mem, e.call, store.Succeeded)
	if n := e.effects(); n < 1 || n != 1 && inTx {
		t.Errorf("%d effects after attempt %d, want one", n, r.Attempt)
	}
	if n := e.effects(); n > 2 {
		t.Errorf("%d effects after one fault, want at most one more", n)
	}
}
