package semel_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

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
	t.Parallel()
	for _, policy := range []policyCase{{name: "Atomic", p: semel.Atomic()}, {name: "AtLeastOnce", p: semel.AtLeastOnce()}} {
		for _, hands := range []bool{true, false} {
			for _, batch := range []bool{true, false} {
				for name, f := range everyFault() {
					for k := range 8 {
						t.Run(fmt.Sprintf("%s/hands %v/batch %v/%s/%d", policy.name, hands, batch, name, k+1), func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) { testQueueFault(t, policy, hands, batch, f, k+1) })
						})
					}
				}
			}
		}
	}
}

func testQueueFault(t *testing.T, policy policyCase, hands, batch bool, f fault, k int) {
	t.Helper()
	inTx := policy.name == "Atomic"
	e := &queueRun{faultRun: faultRun{mem: memory.New(memory.Options{})}, op: plain("op", semel.OperationOptions[string]{Policy: policy.p, Retry: steady(9, 2)})}
	e.call = e.op.Call(me, "k", "in")
	o := semel.Options{Operations: []semel.Declared{e.op}}
	p, other := startQueue(t, newFaulty(e.mem), o, hands), startQueue(t, newFaulty(e.mem), o, hands)
	p.faults.Decide(failWriteCall(k, f))
	_, _ = semel.Enqueue(t.Context(), p, e.call, semel.EnqueueOptions{})
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
