package semeltest

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// maxCalls is more than any way asks of a store for one call.
const maxCalls = 40

// kthChecks let each call that a way makes of the store fail, before and after
// it was applied, alone and together with those that follow, and require that
// what was told is true, and that the key is settled by asking again.
func kthChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, w := range ways[Tx]() {
		checks = append(checks, check[Tx]{w.name, func(r *txRig[Tx]) { r.failEach(w) }})
	}
	return inTx(checks...)
}

// outage is how many calls fail in a row: more than the engine asks before it
// tells a caller that the store does not answer.
const outage = 4

func (r *txRig[Tx]) failEach(w way[Tx]) {
	for _, fault := range []Fault{Refuse, Abort, Lose} {
		for _, n := range []int{1, outage} {
			reached := 0
			for k := 1; k <= maxCalls && r.failKth(w, fault, k, n); k++ {
				reached = k
			}
			if reached == 0 || reached == maxCalls {
				r.Errorf("%v: %d calls failed, want some and not all", fault, reached)
			}
		}
	}
}

// failKth lets n calls fail, from the k-th on. It reports whether there was a
// k-th call.
func (r *txRig[Tx]) failKth(w way[Tx], fault Fault, k, n int) bool {
	r.Helper()
	faulty := NewFaulty(r.tx, func(c Call) Fault {
		if c.N < k || c.N >= k+n {
			return None
		}
		return fault
	})
	work := r.newWork(w, fmt.Sprintf("%v-%d-%d", fault, n, k))
	h := history{answers: []answer{r.askOnce(work, r.failing(faulty))}}
	for len(h.answers) < 6 && !h.answers[len(h.answers)-1].final() {
		h.answers = append(h.answers, r.askOnce(work, r.tx))
	}
	r.judge(work, h, fmt.Sprintf("%v of calls %d to %d", fault, k, k+n-1))
	return faulty.Calls() >= k
}

// askOnce asks with a process of its own, which is closed before the answer is
// looked at.
func (r *txRig[Tx]) askOnce(k *work[Tx], s store.TxStore[Tx]) answer {
	r.Helper()
	e, err := semel.New(s, semel.Options{Survive: store.NoFailure, Lease: r.lease()})
	if err != nil {
		r.Fatalf("New: %v", err)
	}
	a := answer{before: k.effects()}
	a.value, _, a.err = k.way.run(k, e)
	if err := e.Close(r.ctx); err != nil {
		r.Fatalf("Close: %v", err)
	}
	a.after = k.effects()
	if errors.Is(a.err, semel.ErrInProgress) {
		r.passLease(k.call.ID())
	}
	return a
}

// passLease lets the lease of an InProgress record expire.
func (r *rig) passLease(id store.ID) {
	r.Helper()
	if r.advance != nil {
		r.advance(2 * r.lease())
		return
	}
	for {
		if rec := r.read(id); rec == nil || rec.State != store.InProgress || rec.Due <= 0 {
			return
		}
		if pause(r.ctx) != nil {
			r.Fatal("the lease is never over")
		}
	}
}

// judge completes a history and requires that it breaks nothing.
func (r *txRig[Tx]) judge(k *work[Tx], h history, what string) {
	r.Helper()
	h.effects, h.repeats = k.effects(), k.way.repeats
	if rec := r.read(k.call.ID()); rec != nil {
		h.stands = *rec
	}
	for _, name := range h.broken() {
		r.Errorf("%s: broken: %s\n%v", what, name, h)
	}
	if last := h.answers[len(h.answers)-1]; !k.way.wants(last, h.stands.State) {
		r.Errorf("%s: asking again does not settle the key\n%v", what, h)
	}
}
