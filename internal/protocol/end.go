package protocol

import "github.com/semelgo/semel/store"

// heartbeat renews the lease. Expiry only permits a takeover. Before one has
// happened, a late heartbeat is valid.
func (d *Decision) heartbeat(current *store.Record, e *Event) {
	if current.Token != e.Token {
		d.Answer = Lost
		return
	}
	d.Step, d.Change.If, d.Change.To = StepHeartbeat, current.Token, *current
	to := &d.Change.To
	to.Due, to.Expire = e.Lease, 0
	to.Input, to.Outcome = nil, nil
}

// end ends the attempt of the leader, or settles the doubt that another caller has
// recorded about it.
func (d *Decision) end(current *store.Record, e *Event) {
	settles := current.State == store.InDoubt && current.Attempt == e.Token.Attempt
	if current.Token != e.Token && !settles {
		d.Answer = Lost
		return
	}
	state, ok := endState(current, e)
	switch {
	case !ok:
		d.Answer = Refuse
		return
	case settles && !state.Final():
		d.Answer = InDoubt
		return
	case settles:
		d.moveTo(StepSettle, current, store.Token{State: state, Attempt: e.Token.Attempt, Owner: e.Token.Owner}, e)
	default:
		step := e.Step
		if state == store.InDoubt {
			step = StepDoubt // the failure of the last attempt is no proof about the others
		}
		d.moveTo(step, current, store.Token{State: state, Attempt: e.Token.Attempt, Owner: e.Token.Owner}, e)
	}
	if e.Step == StepRequeue || e.Step == StepDoubt && e.Policy == Atomic {
		// The leader does not know its effect. Under Atomic that means an effect
		// outside of the transaction.
		d.Change.To.Tainted = true
	}
}

// endState returns the state in which an attempt ends. Failed needs proof that no
// attempt committed. If the proof is only about the last attempt, the record
// becomes InDoubt.
func endState(current *store.Record, e *Event) (store.State, bool) {
	switch e.Step {
	case StepSucceed:
		return store.Succeeded, true
	case StepFail:
		if current.Tainted && !e.Policy.speaksForAll() {
			return store.InDoubt, e.Proven
		}
		return store.Failed, e.Proven
	case StepRelease:
		return store.Pending, e.Proven
	case StepRequeue:
		return store.Pending, e.Policy.runsAgain()
	default:
		return store.InDoubt, true
	}
}
