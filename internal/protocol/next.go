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

// claim starts a new attempt, or answers why it may not start.
func (d *Decision) claim(current *store.Record, e *Event) {
	if !d.mayStart(current, e) {
		return
	}
	to := &d.Change.To
	e.identityOn(current, to)
	to.Token = store.Token{State: store.InProgress, Attempt: current.Attempt + 1, Owner: e.Owner}
	to.Due = e.Lease
	to.Tainted = Taint(current, e.Policy)
	name := StepClaim
	if current.State == store.InProgress {
		name = StepTakeover
	}
	d.apply(name, current)
}

// inline ends an attempt that was never visible. One write replaces the current
// record by the end.
func (d *Decision) inline(current *store.Record, e *Event) {
	if !d.mayStart(current, e) {
		return
	}
	if e.To == store.Failed && Taint(current, e.Policy) {
		d.Answer = Refuse
		return
	}
	to := &d.Change.To
	e.identityOn(current, to)
	to.Token = store.Token{State: e.To, Attempt: current.Attempt + 1, Owner: e.Owner}
	to.Tainted = Taint(current, e.Policy)
	to.Outcome = e.Outcome
	to.Due, to.Expire = e.Delay, expiry(len(current.Input)+len(to.Input) > 0, e.To, e)
	d.apply(e.Step, current)
	if e.Step == StepVoid {
		// The commit that must be ruled out can reach the database late, after an
		// expired lease was renewed and has expired again.
		d.Change.IfDue = false
	}
}

// mayStart reports whether a new attempt may start. If not, the answer says why.
func (d *Decision) mayStart(current *store.Record, e *Event) bool {
	if current.State != store.Absent && d.isMismatch(current, e) {
		return false
	}
	switch current.State {
	case store.Absent:
		return true
	case store.Pending:
		if current.Due > 0 {
			d.Answer = Wait
			return false
		}
		return true
	case store.Succeeded, store.Failed:
		d.Answer = Replay
		return false
	case store.InProgress, store.InDoubt:
		return d.mayStartAgain(current, e)
	default:
		// A state of a newer version blocks the key. It must not count as absent.
		d.Answer = Refuse
		return false
	}
}

// isMismatch reports whether the record is not known to belong to the caller's
// request, and sets the answer.
func (d *Decision) isMismatch(current *store.Record, e *Event) bool {
	if e.Request == nil {
		return false
	}
	match := e.Request.Compare(*current)
	if match != SameRequest {
		d.Answer = match.answer()
	}
	return match != SameRequest
}

// answer returns the answer to a request that is not known to be the record's.
func (m RequestMatch) answer() Answer {
	if m == UnknownRequest {
		return Newer
	}
	return Mismatch
}

func (d *Decision) mayStartAgain(current *store.Record, e *Event) bool {
	switch {
	case e.Policy == Heal && !e.Probed:
		d.Answer = Probe
	case current.State == store.InDoubt:
		d.Answer = InDoubt
	case current.Due > 0:
		d.Answer = Wait
	case e.Policy.runsAgain():
		return true
	default:
		d.moveTo(StepDoubt, current, store.Token{State: store.InDoubt, Attempt: current.Attempt, Owner: e.Owner}, &Event{})
		d.apply(StepDoubt, current)
	}
	return false
}

// Taint reports whether an attempt that starts now follows one that may have had an
// unknown effect. An Atomic attempt that was taken over can never commit, so it
// leaves no taint. The owner of that attempt shows the policy under which it began,
// because this version of the program may define another.
func Taint(current *store.Record, p Policy) bool {
	return current.Tainted || current.State == store.InProgress && (p != Atomic || !beganAtomic(current.Owner))
}

// atomicOwner is the bit of an owner that is set if the attempt began under Atomic.
const atomicOwner = 1

// MinOwner is the least random number from which MarkOwner makes an owner: a smaller
// one could become zero.
const MinOwner = atomicOwner + 1

// MarkOwner marks a random owner with the policy of its attempt.
func MarkOwner(drawn uint64, p Policy) uint64 {
	if p == Atomic {
		return drawn | atomicOwner
	}
	return drawn &^ atomicOwner
}

func beganAtomic(owner uint64) bool { return owner&atomicOwner != 0 }

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
		d.moveTo(endStep(e.Step, state), current, store.Token{State: state, Attempt: e.Token.Attempt, Owner: e.Token.Owner}, e)
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

func endStep(wished Step, s store.State) Step {
	if wished == StepRequeue {
		return StepRequeue
	}
	switch s {
	case store.Succeeded:
		return StepSucceed
	case store.Failed:
		return StepFail
	case store.Pending:
		return StepRelease
	case store.Absent, store.InProgress, store.InDoubt:
	}
	return StepDoubt
}

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

// RetryAfter is how long a caller should wait for a running attempt: half the age
// of its claim, at least 200 ms and at most 30 s.
func RetryAfter(current store.Record) time.Duration {
	wait := current.Since / 2
	if current.State == store.Pending {
		wait = current.Due
	}
	return min(max(wait, 200*time.Millisecond), 30*time.Second)
}
