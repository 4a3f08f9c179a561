package protocol

import (
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// Next is the protocol: it decides what an event does to the current record. It is
// pure. Every write of Semel is one of its changes.
func Next(current store.Record, e Event) (d Decision) {
	d.Decide(&current, &e)
	return d
}

// Decide sets d to the decision on e. It changes neither *current nor *e, which are
// pointers because they are large. The zero answer is Apply.
func (d *Decision) Decide(current *store.Record, e *Event) {
	*d = Decision{}
	switch e.Step {
	case StepClaim:
		d.claim(current, e)
	case StepInline, StepVoid:
		d.inline(current, e)
	case StepHeartbeat:
		d.heartbeat(current, e)
	case StepSucceed, StepFail, StepRelease, StepDoubt:
		d.end(current, e)
	case StepHeal:
		d.heal(current, e)
	case StepRequeue:
		if e.Token != (store.Token{}) {
			d.end(current, e)
			return
		}
		d.sweep(current, e)
	case StepResolve:
		d.resolve(current, e)
	case StepCreate, StepReschedule, StepCancel, StepRedrive:
		d.queue(current, e)
	case StepTakeover, StepSettle, StepPurge:
		// These are never requested: a claim becomes a takeover, a leader's end
		// becomes a settle, and only stores purge.
		d.Answer = Refuse
	default:
		d.Answer = Refuse
	}
}

// moveTo changes the current record to token t, with the times and the outcome of
// e. If e has no outcome, the current one stays.
func (d *Decision) moveTo(name Step, current *store.Record, t store.Token, e *Event) {
	d.Step, d.Change.If, d.Change.To = name, current.Token, *current
	to := &d.Change.To
	to.Token = t
	to.Due, to.Expire = 0, 0
	if t.State == store.Pending {
		to.Due = e.Delay
	}
	if t.State == store.Pending || t.State.Final() {
		to.Expire = expiry(len(current.Input) > 0, t.State, e)
	}
	to.Input, to.Outcome = nil, e.Outcome
}

// expiry is when a final or Pending record may be purged. A Pending record with an
// input is never purged, because a worker needs it, and no record before it is due.
func expiry(input bool, s store.State, e *Event) time.Duration {
	switch {
	case s == store.Pending && input, e.Expire == 0:
		return 0
	case s == store.Pending:
		return e.Expire + min(e.Delay, math.MaxInt64-e.Expire)
	default:
		return e.Expire
	}
}

// apply makes d a change that a caller other than the leader makes. A due record
// must still be due at the write, by the store's clock.
func (d *Decision) apply(name Step, current *store.Record) {
	due := current.State == store.Pending || current.State == store.InProgress
	d.Step, d.Change.If, d.Change.IfDue = name, current.Token, due
}
