package protocol

import "github.com/semelgo/semel/store"

// heal records the effect that the evidence shows. The new owner shows a leader
// that is still running that it has lost the record; the leader then returns this
// outcome.
func (d *Decision) heal(current *store.Record, e *Event) {
	switch {
	case current.State.Final():
		d.Answer = Replay
	case !current.State.Unfinished():
		d.Answer = Lost
	default:
		d.moveTo(StepHeal, current, store.Token{State: store.Succeeded, Attempt: current.Attempt, Owner: e.Owner}, e)
	}
}

// sweep settles the record of a dead leader, as the policy says.
func (d *Decision) sweep(current *store.Record, e *Event) {
	if current.State != store.InProgress {
		d.Answer = Lost
		return
	}
	if !d.mayStartAgain(current, e) {
		if d.Answer == Apply {
			d.Change.To.Outcome = e.Outcome
		}
		return
	}
	d.moveTo(StepRequeue, current, store.Token{State: store.Pending, Attempt: current.Attempt, Owner: e.Owner}, e)
	d.apply(StepRequeue, current)
	d.Change.To.Tainted = Taint(current, e.Policy)
}

// resolve applies an operator's decision on a record in doubt. Pending means that
// no attempt had an effect, so the taint is removed.
func (d *Decision) resolve(current *store.Record, e *Event) {
	if current.State != store.InDoubt || !CanResolve(e.To) {
		d.Answer = Refuse
		return
	}
	d.moveTo(StepResolve, current, store.Token{State: e.To, Attempt: current.Attempt, Owner: e.Owner}, e)
	d.Change.To.Tainted = false
}
