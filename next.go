package semel

import (
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// next is the protocol: it decides what an event does to the current record. It is
// pure. Every write of Semel is one of its changes.
func next(current store.Record, e event) (d decision) {
	d.decide(&current, &e)
	return d
}

// decide sets d to the decision on e. It changes neither *current nor *e, which are
// pointers because they are large. The zero answer is answerApply.
func (d *decision) decide(current *store.Record, e *event) {
	*d = decision{}
	switch e.step {
	case stepClaim:
		d.claim(current, e)
	case stepInline, stepVoid:
		d.inline(current, e)
	case stepHeartbeat:
		d.heartbeat(current, e)
	case stepSucceed, stepFail, stepRelease, stepDoubt:
		d.end(current, e)
	case stepHeal:
		d.heal(current, e)
	case stepRequeue:
		if e.token != (store.Token{}) {
			d.end(current, e)
			return
		}
		d.sweep(current, e)
	case stepResolve:
		d.resolve(current, e)
	case stepCreate, stepReschedule, stepCancel, stepRedrive:
		d.queue(current, e)
	case stepTakeover, stepSettle, stepPurge:
		// These are never requested: a claim becomes a takeover, a leader's end
		// becomes a settle, and only stores purge.
		d.answer = answerRefuse
	default:
		d.answer = answerRefuse
	}
}

// claim starts a new attempt, or answers why it may not start.
func (d *decision) claim(current *store.Record, e *event) {
	if !d.mayStart(current, e) {
		return
	}
	to := &d.change.To
	e.identityOn(current, to)
	to.Token = store.Token{State: store.InProgress, Attempt: current.Attempt + 1, Owner: e.owner}
	to.Due = e.lease
	to.Tainted = taint(current, e.policy)
	name := stepClaim
	if current.State == store.InProgress {
		name = stepTakeover
	}
	d.apply(name, current)
}

// inline ends an attempt that was never visible. One write replaces the current
// record by the end.
func (d *decision) inline(current *store.Record, e *event) {
	if !d.mayStart(current, e) {
		return
	}
	if e.to == store.Failed && taint(current, e.policy) {
		d.answer = answerRefuse
		return
	}
	to := &d.change.To
	e.identityOn(current, to)
	to.Token = store.Token{State: e.to, Attempt: current.Attempt + 1, Owner: e.owner}
	to.Tainted = taint(current, e.policy)
	to.Outcome = e.outcome
	to.Due, to.Expire = e.delay, expiry(len(current.Input)+len(to.Input) > 0, e.to, e)
	d.apply(e.step, current)
	if e.step == stepVoid {
		// The commit that must be ruled out can reach the database late, after an
		// expired lease was renewed and has expired again.
		d.change.IfDue = false
	}
}

// mayStart reports whether a new attempt may start. If not, the answer says why.
func (d *decision) mayStart(current *store.Record, e *event) bool {
	if current.State != store.Absent && d.isMismatch(current, e) {
		return false
	}
	switch current.State {
	case store.Absent:
		return true
	case store.Pending:
		if current.Due > 0 {
			d.answer = answerWait
			return false
		}
		return true
	case store.Succeeded, store.Failed:
		d.answer = answerReplay
		return false
	case store.InProgress, store.InDoubt:
		return d.mayStartAgain(current, e)
	default:
		// A state of a newer version blocks the key. It must not count as absent.
		d.answer = answerRefuse
		return false
	}
}

// isMismatch reports whether the record is not known to belong to the caller's
// request, and sets the answer.
func (d *decision) isMismatch(current *store.Record, e *event) bool {
	if e.request == nil {
		return false
	}
	switch e.request.compare(*current) {
	case sameRequest:
		return false
	case unknownRequest:
		d.answer = answerNewer
	case otherRequest:
		d.answer = answerMismatch
	}
	return true
}

func (d *decision) mayStartAgain(current *store.Record, e *event) bool {
	switch {
	case e.policy == policyHeal && !e.probed:
		d.answer = answerProbe
	case current.State == store.InDoubt:
		d.answer = answerInDoubt
	case current.Due > 0:
		d.answer = answerWait
	case e.policy.runsAgain():
		return true
	default:
		d.moveTo(stepDoubt, current, store.Token{State: store.InDoubt, Attempt: current.Attempt, Owner: e.owner}, &event{})
		d.apply(stepDoubt, current)
	}
	return false
}

// taint reports whether an attempt that starts now follows one that may have had an
// unknown effect. An Atomic attempt that was taken over can never commit, so it
// leaves no taint. The owner of that attempt shows the policy under which it began,
// because this version of the program may define another.
func taint(current *store.Record, p policyKind) bool {
	return current.Tainted || current.State == store.InProgress && (p != policyAtomic || !beganAtomic(current.Owner))
}

// atomicOwner is the bit of an owner that is set if the attempt began under Atomic.
const atomicOwner = 1

// ownerOf marks a random owner with the policy of its attempt.
func ownerOf(drawn uint64, p policyKind) uint64 {
	if p == policyAtomic {
		return drawn | atomicOwner
	}
	return drawn &^ atomicOwner
}

func beganAtomic(owner uint64) bool { return owner&atomicOwner != 0 }

// heartbeat renews the lease. Expiry only permits a takeover. Before one has
// happened, a late heartbeat is valid.
func (d *decision) heartbeat(current *store.Record, e *event) {
	if current.Token != e.token {
		d.answer = answerLost
		return
	}
	d.step, d.change.If, d.change.To = stepHeartbeat, current.Token, *current
	to := &d.change.To
	to.Due, to.Expire = e.lease, 0
	to.Input, to.Outcome = nil, nil
}

// end ends the attempt of the leader, or settles the doubt that another caller has
// recorded about it.
func (d *decision) end(current *store.Record, e *event) {
	settles := current.State == store.InDoubt && current.Attempt == e.token.Attempt
	if current.Token != e.token && !settles {
		d.answer = answerLost
		return
	}
	state, ok := endState(current, e)
	switch {
	case !ok:
		d.answer = answerRefuse
		return
	case settles && !state.Final():
		d.answer = answerInDoubt
		return
	case settles:
		d.moveTo(stepSettle, current, store.Token{State: state, Attempt: e.token.Attempt, Owner: e.token.Owner}, e)
	default:
		d.moveTo(endStep(e.step, state), current, store.Token{State: state, Attempt: e.token.Attempt, Owner: e.token.Owner}, e)
	}
	if e.step == stepRequeue {
		d.change.To.Tainted = taint(current, e.policy)
	}
	if e.taints {
		d.change.To.Tainted = true
	}
}

// endState returns the state in which an attempt ends. Failed needs proof that no
// attempt committed. If the proof is only about the last attempt, the record
// becomes InDoubt.
func endState(current *store.Record, e *event) (store.State, bool) {
	switch e.step {
	case stepSucceed:
		return store.Succeeded, true
	case stepFail:
		if current.Tainted && !e.policy.speaksForAll() {
			return store.InDoubt, e.proven
		}
		return store.Failed, e.proven
	case stepRelease:
		return store.Pending, e.proven
	case stepRequeue:
		return store.Pending, e.policy.runsAgain()
	default:
		return store.InDoubt, true
	}
}

func endStep(wished step, s store.State) step {
	if wished == stepRequeue {
		return stepRequeue
	}
	switch s {
	case store.Succeeded:
		return stepSucceed
	case store.Failed:
		return stepFail
	case store.Pending:
		return stepRelease
	case store.Absent, store.InProgress, store.InDoubt:
	}
	return stepDoubt
}

// heal records the effect that the evidence shows. The new owner shows a leader
// that is still running that it has lost the record; the leader then returns this
// outcome.
func (d *decision) heal(current *store.Record, e *event) {
	switch {
	case current.State.Final():
		d.answer = answerReplay
	case !current.State.Unfinished():
		d.answer = answerLost
	default:
		d.moveTo(stepHeal, current, store.Token{State: store.Succeeded, Attempt: current.Attempt, Owner: e.owner}, e)
	}
}

// sweep settles the record of a dead leader, as the policy says.
func (d *decision) sweep(current *store.Record, e *event) {
	if current.State != store.InProgress {
		d.answer = answerLost
		return
	}
	if !d.mayStartAgain(current, e) {
		if d.answer == answerApply {
			d.change.To.Outcome = e.outcome
		}
		return
	}
	d.moveTo(stepRequeue, current, store.Token{State: store.Pending, Attempt: current.Attempt, Owner: e.owner}, e)
	d.apply(stepRequeue, current)
	d.change.To.Tainted = taint(current, e.policy)
}

// resolve applies an operator's decision on a record in doubt. Pending means that
// no attempt had an effect, so the taint is removed.
func (d *decision) resolve(current *store.Record, e *event) {
	if current.State != store.InDoubt || e.to != store.Pending && !e.to.Final() {
		d.answer = answerRefuse
		return
	}
	d.moveTo(stepResolve, current, store.Token{State: e.to, Attempt: current.Attempt, Owner: e.owner}, e)
	d.change.To.Tainted = false
}

// queue decides on records that no attempt is running.
func (d *decision) queue(current *store.Record, e *event) {
	state := store.Pending
	if e.step == stepCancel {
		state = store.Failed
	}
	switch {
	case e.step == stepCreate && current.State == store.Absent:
	case e.step == stepCreate && d.isMismatch(current, e):
		return
	case e.step == stepCreate:
		d.answer = answerReplay
		return
	case e.step == stepRedrive && current.State == store.Failed && e.owned:
	case e.step == stepRedrive && current.State == store.InDoubt && e.owned && e.policy.runsAgain():
	case e.step == stepReschedule && current.State == store.Pending:
	case e.step == stepCancel && current.State == store.Pending && !current.Tainted:
	default:
		d.answer = answerRefuse
		return
	}
	d.moveTo(e.step, current, store.Token{State: state, Attempt: current.Attempt, Owner: e.owner}, e)
	if current.State == store.InDoubt && e.policy != policyAtomic {
		d.change.To.Tainted = true // its last attempt may have had an effect
	}
	if e.step == stepCreate {
		to := &d.change.To
		identity := e.identity
		identity.Token, identity.Due, identity.Expire = to.Token, to.Due, to.Expire
		*to = identity
	}
}

// moveTo changes the current record to token t, with the times and the outcome of
// e. If e has no outcome, the current one stays.
func (d *decision) moveTo(name step, current *store.Record, t store.Token, e *event) {
	d.step, d.change.If, d.change.To = name, current.Token, *current
	to := &d.change.To
	to.Token = t
	to.Due, to.Expire = 0, 0
	if t.State == store.Pending {
		to.Due = e.delay
	}
	if t.State == store.Pending || t.State.Final() {
		to.Expire = expiry(len(current.Input) > 0, t.State, e)
	}
	to.Input, to.Outcome = nil, e.outcome
}

// expiry is when a final or Pending record may be purged. A Pending record with an
// input is never purged, because a worker needs it, and no record before it is due.
func expiry(input bool, s store.State, e *event) time.Duration {
	switch {
	case s == store.Pending && input, e.expire == 0:
		return 0
	case s == store.Pending:
		return e.expire + min(e.delay, math.MaxInt64-e.expire)
	default:
		return e.expire
	}
}

// apply makes d a change that a caller other than the leader makes. A due record
// must still be due at the write, by the store's clock.
func (d *decision) apply(name step, current *store.Record) {
	due := current.State == store.Pending || current.State == store.InProgress
	d.step, d.change.If, d.change.IfDue = name, current.Token, due
}

// retryAfter is how long a caller should wait for a running attempt: half the age
// of its claim, at least 200 ms and at most 30 s.
func retryAfter(current store.Record) time.Duration {
	wait := current.Since / 2
	if current.State == store.Pending {
		wait = current.Due
	}
	return min(max(wait, 200*time.Millisecond), 30*time.Second)
}
