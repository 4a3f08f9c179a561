package storetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// lateLeaderChecks stop a leader in its handler until its lease is over and another
// process has taken over and ended. When the leader continues, it learns this, its
// effect does not count, and it returns the winner's answer.
func lateLeaderChecks(all []mode) []engineCheck {
	var checks []engineCheck
	for _, w := range all {
		checks = append(checks, engineCheck{w.name, func(r *engineHarness) {
			if w.leased && r.caps.Exclusion == store.ExcludesAll {
				r.Skip("Capabilities say Exclusive: no takeover is possible while a transaction is open")
			}
			r.lateLeader(w)
		}})
	}
	return checks
}

func lateLeaderModes() []mode {
	return []mode{
		{name: "Fenced", policy: func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }, run: do},
		{name: "AtLeastOnce", policy: func(*receiver) semel.Policy { return semel.AtLeastOnce() }, run: do, mayRepeatEffect: true},
	}
}

func lateLeaderModesInTx() []mode {
	return slices.DeleteFunc(modesInTx(), func(w mode) bool { return w.name != "LeasedTx" && w.name != "InTx" })
}

func (r *engineHarness) lateLeader(w mode) {
	// The zombie's heartbeats do not reach the store until the zombie continues.
	var awake atomic.Bool
	cut := r.connect(func(c Call) Fault {
		if !awake.Load() && len(c.Changes) == 1 && c.Changes[0].If == c.Changes[0].To.Token {
			return Refuse()
		}
		return Fault{}
	})
	// No lease ends by itself, however slow the machine is: the check ends the zombie's.
	r.shortLease = time.Minute
	k := r.newModeRun(w, "late leader")
	entered, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	var stalled atomic.Bool
	k.beforeEffect = func() {
		if stalled.CompareAndSwap(false, true) {
			close(entered)
			<-goOn
		}
	}
	var late answer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		late = r.callOnce(k, cut)
	}()
	select {
	case <-entered:
	case <-ended:
		r.Fatalf("the zombie-to-be did not run: %v", late.err)
	}
	r.beat(r.mustRead(k.call.ID()), 0)
	winner := r.callOnce(k, r.connect(nil))
	awake.Store(true)
	release()
	<-ended
	if winner.err != nil {
		r.Errorf("the takeover returns %v", winner.err)
	}
	if late.err != nil || late.value != winner.value {
		r.Errorf("the zombie returns %q, %v, want the winner's %q", late.value, late.err, winner.value)
	}
	winner.after, late.before = winner.before, late.after // the two calls overlap
	r.checkHistory(k, history{answers: []answer{winner, late}}, "late leader")
	if got := r.mustRead(k.call.ID()); got.State != store.Succeeded || got.Attempt != 2 {
		r.Errorf("%s is current, want the success of attempt 2", showToken(got.Token))
	}
}
