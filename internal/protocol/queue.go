package protocol

import "github.com/semelgo/semel/store"

// queue decides on records that no attempt is running.
func (d *Decision) queue(current *store.Record, e *Event) {
	state := store.Pending
	switch {
	case e.Step == StepCancel && current.Tainted:
		state = store.InDoubt
	case e.Step == StepCancel:
		state = store.Failed
	}
	switch {
	case e.Step == StepCreate && current.State == store.Absent:
	case e.Step == StepCreate && d.isMismatch(current, e):
		return
	case e.Step == StepCreate:
		d.Answer = Replay
		return
	case e.Step == StepRedrive && current.State == store.Failed && e.Owned:
	case e.Step == StepRedrive && current.State == store.InDoubt && e.Owned && e.Policy.runsAgain():
	case e.Step == StepReschedule && current.State == store.Pending:
	case e.Step == StepCancel && current.State == store.Pending:
	case e.Step == StepCancel && current.State == store.InProgress:
		d.Answer = Wait // only the leader may write the record of a running attempt
		return
	case e.Step == StepRedrive && current.State == store.Failed:
		d.Answer = NotOwned
		return
	case e.Step == StepRedrive && current.State == store.InDoubt:
		d.Answer = InDoubt
		return
	default:
		d.Answer = Refuse
		return
	}
	d.moveTo(e.Step, current, store.Token{State: state, Attempt: current.Attempt, Owner: e.Owner}, e)
	if current.State == store.InDoubt && e.Policy != Atomic {
		d.Change.To.Tainted = true // its last attempt may have had an effect
	}
	if e.Step == StepCreate {
		to := &d.Change.To
		identity := e.Identity
		identity.Token, identity.Due, identity.Expire = to.Token, to.Due, to.Expire
		*to = identity
	}
}
