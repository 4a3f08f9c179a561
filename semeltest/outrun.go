package semeltest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// outrunChecks let a leader stop in its handler until its lease is over and
// another process has taken over and ended. When it goes on it learns that, has
// no effect that counts, and answers what the winner did.
func outrunChecks[Tx any]() []check[Tx] {
	var checks []check[Tx]
	for _, w := range outrunWays[Tx]() {
		checks = append(checks, check[Tx]{w.name, func(r *txRig[Tx]) {
			if w.leased && r.caps.SingleWriter {
				r.Skip("Capabilities say Exclusive: nobody can take over while a transaction is open")
			}
			r.outrun(w)
		}})
	}
	return inTx(checks...)
}

func outrunWays[Tx any]() []way[Tx] {
	atomically := func(*receiver) semel.Policy { return semel.Atomic() }
	return []way[Tx]{
		{name: "LeasedTx", policy: atomically, leased: true, run: doTx[Tx], inTx: true},
		{name: "InTx", policy: atomically, run: doInTx[Tx], inTx: true},
		{name: "Fenced", policy: func(v *receiver) semel.Policy { return semel.Fenced(v.raise, v.probe) }, run: do[Tx]},
		{name: "AtLeastOnce", policy: func(*receiver) semel.Policy { return semel.AtLeastOnce() }, run: do[Tx], repeats: true},
	}
}

func (r *txRig[Tx]) outrun(w way[Tx]) {
	// The zombie's heartbeats do not reach the store, until it goes on.
	var awake atomic.Bool
	cut := NewFaulty(r.tx, func(c Call) Fault {
		if !awake.Load() && len(c.Changes) == 1 && c.Changes[0].If == c.Changes[0].To.Token {
			return Refuse
		}
		return None
	})
	r.leases = 250 * time.Millisecond // the suite has to wait for them
	k := r.newWork(w, "outrun")
	entered, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	var stalled atomic.Bool
	k.stall = func() {
		if stalled.CompareAndSwap(false, true) {
			close(entered)
			<-goOn
		}
	}
	var late answer
	var zombie sync.WaitGroup
	zombie.Go(func() { late = r.askOnce(k, cut) })
	<-entered
	r.passLease(k.call.ID())
	// The winner's lease must not end, however slow the machine is.
	r.leases = time.Minute
	k.define(k.call.Key())
	winner := r.askOnce(k, r.tx)
	awake.Store(true)
	release()
	zombie.Wait()
	if winner.err != nil {
		r.Errorf("whoever takes over is told %v", winner.err)
	}
	if late.err != nil || late.value != winner.value {
		r.Errorf("the zombie is told %q, %v, want the winner's %q", late.value, late.err, winner.value)
	}
	winner.after, late.before = winner.before, late.after // they overlap
	r.judge(k, history{answers: []answer{winner, late}}, "outrun")
	if got := r.mustRead(k.call.ID()); got.State != store.Succeeded || got.Attempt != 2 {
		r.Errorf("%s stands, want the success of attempt 2", showToken(got.Token))
	}
}
