package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// lateLeaderChecks stop a leader in its handler until its lease has expired and
// another process has taken over and ended. When the leader continues, it learns
// this, its effect does not count, and it returns the winner's answer.
func lateLeaderChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, w := range lateLeaderModes[Tx]() {
		checks = append(checks, check[Tx]{w.name, func(r *txHarness[Tx]) {
			if w.leased && r.caps.Exclusion == store.ExcludesAll {
				r.Skip("Capabilities say Exclusive: no takeover is possible while a transaction is open")
			}
			r.lateLeader(w)
		}})
	}
	return checks
}

func lateLeaderModes[Tx any]() []mode[Tx] {
	atomically := func(*receiver) semel.Policy { return semel.Atomic() }
	return []mode[Tx]{
		{name: "LeasedTx", policy: atomically, leased: true, run: doTx[Tx], inTx: true},
		{name: "InTx", policy: atomically, run: doInTx[Tx], inTx: true},
		{name: "Fenced", policy: func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }, run: do[Tx]},
		{name: "AtLeastOnce", policy: func(*receiver) semel.Policy { return semel.AtLeastOnce() }, run: do[Tx], mayRepeatEffect: true},
	}
}

func (r *txHarness[Tx]) lateLeader(w mode[Tx]) {
	// The zombie's heartbeats do not reach the store until the zombie continues.
	var awake atomic.Bool
	cut := NewFaulty(r.tx, func(c Call) Fault {
		if !awake.Load() && len(c.Changes) == 1 && c.Changes[0].If == c.Changes[0].To.Token {
			return Refuse()
		}
		return Fault{}
	})
	r.shortLease = 250 * time.Millisecond // the suite waits for its end
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
	var zombie sync.WaitGroup
	zombie.Go(func() { late = r.callOnce(k, cut) })
	<-entered
	r.expireLease(k.call.ID())
	// The winner's lease must not expire, however slow the machine is.
	r.shortLease = time.Minute
	k.define(k.call.Key())
	winner := r.callOnce(k, r.tx)
	awake.Store(true)
	release()
	zombie.Wait()
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
