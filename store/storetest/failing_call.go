package storetest

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// maxCalls is above the number of store calls that a mode makes for one call.
const maxCalls = 40

// failingCallChecks let each store call of a mode fail in turn, before and after it
// is applied, alone and with the calls after it. They require that each answer is
// true and that retries settle the key.
func failingCallChecks(all []mode) []engineCheck {
	var checks []engineCheck
	for _, w := range all {
		checks = append(checks, engineCheck{w.name, func(r *engineHarness) { r.failEachCall(w) }})
	}
	return checks
}

// failuresInARow is more than the number of tries after which the engine returns
// that the store is unavailable.
const failuresInARow = 4

func (r *engineHarness) failEachCall(w mode) {
	for _, fault := range []Fault{Refuse(), Abort(), Lose()} {
		for _, n := range []int{1, failuresInARow} {
			reached := 0
			for k := 1; k <= maxCalls && r.failCallsFrom(w, fault, k, n); k++ {
				reached = k
			}
			if reached == 0 || reached == maxCalls {
				r.Errorf("%v: %d calls failed, want some and not all", fault, reached)
			}
		}
	}
}

// failCallsFrom lets n calls fail from the k-th on. It reports whether there was a
// k-th call.
func (r *engineHarness) failCallsFrom(w mode, fault Fault, k, n int) bool {
	r.Helper()
	faulty := r.connect(func(c Call) Fault {
		if c.N < k || c.N >= k+n {
			return Fault{}
		}
		return fault
	})
	work := r.newModeRun(w, fmt.Sprintf("%v-%d-%d", fault, n, k))
	h := history{answers: []answer{r.callOnce(work, faulty)}}
	for len(h.answers) < 6 && !h.answers[len(h.answers)-1].final() {
		h.answers = append(h.answers, r.callOnce(work, r.connect(nil)))
	}
	r.checkHistory(work, h, fmt.Sprintf("%v of calls %d to %d", fault, k, k+n-1))
	return faulty.Calls() >= k
}

// callOnce calls in a process of its own, which is closed before the answer is
// checked.
func (r *engineHarness) callOnce(k *modeRun, to processStore) answer {
	r.Helper()
	e, err := to.newEngine(semel.Options{Survive: store.NoFailure, Lease: r.lease()})
	check.Require(r, err, "New")
	a := answer{before: k.effects()}
	a.value, _, a.err = k.mode.run(k, e)
	check.Require(r, e.Close(r.ctx), "Close")
	a.after = k.effects()
	if errors.Is(a.err, semel.ErrInProgress) {
		r.expireLease(k.call.ID())
	}
	return a
}

// checkHistory completes a history and requires that it has no violations.
func (r *engineHarness) checkHistory(k *modeRun, h history, what string) {
	r.Helper()
	h.effects, h.mayRepeatEffect = k.effects(), k.mode.mayRepeatEffect
	if rec := r.read(k.call.ID()); rec != nil {
		h.record = *rec
	}
	for _, name := range h.violations() {
		r.Errorf("%s: broken: %s\n%v", what, name, h)
	}
	if last := h.answers[len(h.answers)-1]; !k.mode.accepts(last, h.record.State) {
		r.Errorf("%s: retries do not settle the key\n%v", what, h)
	}
}
