package semel

import (
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// next is the protocol: what may become of the record that stands, when
// somebody wants e. It is pure; every write of Semel is one of its changes.
func next(stands store.Record, e event) (d decision) {
	d.of(&stands, &e)
	return d
}

// of makes of d what next returns. It changes neither of the two, which are large and
// so handed on as they are. What is not said otherwise is tried.
func (d *decision) of(stands *store.Record, e *event) {
	*d = decision{}
	switch e.step {
	case stepClaim:
		d.claim(stands, e)
	case stepInline, stepVoid:
		d.inline(stands, e)
	case stepHeartbeat:
		d.heartbeat(stands, e)
	case stepSucceed, stepFail, stepRelease, stepDoubt:
		d.end(stands, e)
	case stepHeal:
		d.heal(stands, e)
	case stepRequeue:
		if e.token != (store.Token{}) {
			d.end(stands, e)
			return
		}
		d.sweep(stands, e)
	case stepResolve:
		d.resolve(stands, e)
	case stepCreate, stepReschedule, stepCancel, stepRedrive:
		d.queue(stands, e)
	case stepTakeover, stepSettle, stepPurge:
		// Nobody asks for these: a claim becomes a takeover, a leader's end
		// becomes a settle, and only stores purge.
		d.say = sayRefuse
	default:
		d.say = sayRefuse
	}
}

// claim lets the asker lead a new attempt, or says why it may not.
func (d *decision) claim(stands *store.Record, e *event) {
	if !d.mayStart(stands, e) {
		return
	}
	to := &d.change.To
	e.identityOn(stands, to)
	to.Token = store.Token{State: store.InProgress, Attempt: stands.Attempt + 1, Owner: e.owner}
	to.Due = e.lease
	to.Tainted = taint(stands, e.policy)
	name := stepClaim
	if stands.State == store.InProgress {
		name = stepTakeover
	}
	d.try(name, stands)
}

// inline ends an attempt that was never visible: what stood before it is
// replaced by its end in one write.
func (d *decision) inline(stands *store.Record, e *event) {
	if !d.mayStart(stands, e) {
		return
	}
	if e.to == store.Failed && taint(stands, e.policy) {
		d.say = sayRefuse
		return
	}
	to := &d.change.To
	e.identityOn(stands, to)
	to.Token = store.Token{State: e.to, Attempt: stands.Attempt + 1, Owner: e.owner}
	to.Tainted = taint(stands, e.policy)
	to.Outcome = e.outcome
	to.Due, to.Expire = e.delay, expiry(len(stands.Input)+len(to.Input) > 0, e.to, e)
	d.try(e.step, stands)
	if e.step == stepVoid {
		// The commit that must be ruled out may reach the database late, when
		// a lease that was over has been renewed and has run out again.
		d.change.IfDue = false
	}
}

// mayStart says whether a new attempt may begin on what stands. If not, the
// decision says what to do instead.
func (d *decision) mayStart(stands *store.Record, e *event) bool {
	if stands.State != store.Absent && d.isOther(stands, e) {
		return false
	}
	switch stands.State {
	case store.Absent:
		return true
	case store.Pending:
		if stands.Due > 0 {
			d.say = sayWait
			return false
		}
		return true
	case store.Succeeded, store.Failed:
		d.say = sayReplay
		return false
	case store.InProgress, store.InDoubt:
		return d.mayStartAgain(stands, e)
	default:
		// A state of a newer version is a stop, never an absence.
		d.say = sayRefuse
		return false
	}
}

// isOther reports whether the record is not known to belong to the caller's request, which
// the decision then says.
func (d *decision) isOther(stands *store.Record, e *event) bool {
	if e.of == nil {
		return false
	}
	switch e.of.compare(*stands) {
	case sameRequest:
		return false
	case unknownRequest:
		d.say = sayNewer
	case otherRequest:
		d.say = sayMismatch
	}
	return true
}

func (d *decision) mayStartAgain(stands *store.Record, e *event) bool {
	switch {
	case e.policy == policyHeal && !e.looked:
		d.say = sayLook
	case stands.State == store.InDoubt:
		d.say = sayDoubt
	case stands.Due > 0:
		d.say = sayWait
	case e.policy.runsAgain():
		return true
	default:
		d.becomes(stepDoubt, stands, store.Token{State: store.InDoubt, Attempt: stands.Attempt, Owner: e.owner}, &event{})
		d.try(stepDoubt, stands)
	}
	return false
}

// taint tells whether an attempt that starts on the record follows one that may have had
// an effect that is not known. An Atomic attempt that was taken over can never commit, so
// it leaves no taint. Which policy an attempt began with is told by its own owner, because
// the operation may have another policy in this version of the program.
func taint(stands *store.Record, p policyKind) bool {
	return stands.Tainted || stands.State == store.InProgress && (p != policyAtomic || !beganAtomic(stands.Owner))
}

// atomicOwner is the bit of an owner that is set if the attempt began under Atomic.
const atomicOwner = 1

// ownerOf is an owner that was drawn, for an attempt that begins under that policy.
func ownerOf(drawn uint64, p policyKind) uint64 {
	if p == policyAtomic {
		return drawn | atomicOwner
	}
	return drawn &^ atomicOwner
}

func beganAtomic(owner uint64) bool { return owner&atomicOwner != 0 }

// heartbeat renews the lease. Expiry is a permission for others, not a
// loss: while nobody took over, a late heartbeat is as good as an early one.
func (d *decision) heartbeat(stands *store.Record, e *event) {
	if stands.Token != e.token {
		d.say = sayLost
		return
	}
	d.step, d.change.If, d.change.To = stepHeartbeat, stands.Token, *stands
	to := &d.change.To
	to.Due, to.Expire = e.lease, 0
	to.Input, to.Outcome = nil, nil
}

// end lets the leader end its attempt, or settle the doubt that somebody
// else recorded about it meanwhile.
func (d *decision) end(stands *store.Record, e *event) {
	settles := stands.State == store.InDoubt && stands.Attempt == e.token.Attempt
	if stands.Token != e.token && !settles {
		d.say = sayLost
		return
	}
	state, ok := endState(stands, e)
	switch {
	case !ok:
		d.say = sayRefuse
		return
	case settles && !state.Final():
		d.say = sayDoubt
		return
	case settles:
		d.becomes(stepSettle, stands, store.Token{State: state, Attempt: e.token.Attempt, Owner: e.token.Owner}, e)
	default:
		d.becomes(endStep(e.step, state), stands, store.Token{State: state, Attempt: e.token.Attempt, Owner: e.token.Owner}, e)
	}
	if e.step == stepRequeue {
		d.change.To.Tainted = taint(stands, e.policy)
	}
	if e.taints {
		d.change.To.Tainted = true
	}
}

// endState is the state an attempt ends in. Failed needs the proof that no
// attempt committed; where a leader can vouch for itself only, the record is
// left in doubt.
func endState(stands *store.Record, e *event) (store.State, bool) {
	switch e.step {
	case stepSucceed:
		return store.Succeeded, true
	case stepFail:
		if stands.Tainted && !e.policy.speaksForAll() {
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

// heal records the effect that evidence shows. It draws a new owner, so
// that a leader still alive learns that it lost and answers with this.
func (d *decision) heal(stands *store.Record, e *event) {
	switch {
	case stands.State.Final():
		d.say = sayReplay
	case !stands.State.Unfinished():
		d.say = sayLost
	default:
		d.becomes(stepHeal, stands, store.Token{State: store.Succeeded, Attempt: stands.Attempt, Owner: e.owner}, e)
	}
}

// sweep frees what a dead leader left, as the policy says.
func (d *decision) sweep(stands *store.Record, e *event) {
	if stands.State != store.InProgress {
		d.say = sayLost
		return
	}
	if !d.mayStartAgain(stands, e) {
		if d.say == sayTry {
			d.change.To.Outcome = e.outcome
		}
		return
	}
	d.becomes(stepRequeue, stands, store.Token{State: store.Pending, Attempt: stands.Attempt, Owner: e.owner}, e)
	d.try(stepRequeue, stands)
	d.change.To.Tainted = taint(stands, e.policy)
}

// resolve is a person's word on a record in doubt. Pending is their word
// that nothing happened, so the taint goes.
func (d *decision) resolve(stands *store.Record, e *event) {
	if stands.State != store.InDoubt || e.to != store.Pending && !e.to.Final() {
		d.say = sayRefuse
		return
	}
	d.becomes(stepResolve, stands, store.Token{State: e.to, Attempt: stands.Attempt, Owner: e.owner}, e)
	d.change.To.Tainted = false
}

// queue is what callers and people do with records that nobody runs.
func (d *decision) queue(stands *store.Record, e *event) {
	state := store.Pending
	if e.step == stepCancel {
		state = store.Failed
	}
	switch {
	case e.step == stepCreate && stands.State == store.Absent:
	case e.step == stepCreate && d.isOther(stands, e):
		return
	case e.step == stepCreate:
		d.say = sayReplay
		return
	case e.step == stepRedrive && stands.State == store.Failed && e.owned:
	case e.step == stepRedrive && stands.State == store.InDoubt && e.owned && e.policy.runsAgain():
	case e.step == stepReschedule && stands.State == store.Pending:
	case e.step == stepCancel && stands.State == store.Pending && !stands.Tainted:
	default:
		d.say = sayRefuse
		return
	}
	d.becomes(e.step, stands, store.Token{State: state, Attempt: stands.Attempt, Owner: e.owner}, e)
	if stands.State == store.InDoubt && e.policy != policyAtomic {
		d.change.To.Tainted = true // its last attempt may have had an effect
	}
	if e.step == stepCreate {
		to := &d.change.To
		identity := e.identity
		identity.Token, identity.Due, identity.Expire = to.Token, to.Due, to.Expire
		*to = identity
	}
}

// becomes makes of what stands t, with the times and the outcome of e. The outcome
// that stands is kept when e has none.
func (d *decision) becomes(name step, stands *store.Record, t store.Token, e *event) {
	d.step, d.change.If, d.change.To = name, stands.Token, *stands
	to := &d.change.To
	to.Token = t
	to.Due, to.Expire = 0, 0
	if t.State == store.Pending {
		to.Due = e.delay
	}
	if t.State == store.Pending || t.State.Final() {
		to.Expire = expiry(len(stands.Input) > 0, t.State, e)
	}
	to.Input, to.Outcome = nil, e.outcome
}

// expiry is when what becomes final or Pending may be purged. What a worker can go
// on with, because its input is kept, never is before it is done, and nothing
// before it is due.
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

// try makes it a change that somebody else than the leader makes: what they found due
// must still be due at the write, by the store's clock.
func (d *decision) try(name step, stands *store.Record) {
	due := stands.State == store.Pending || stands.State == store.InProgress
	d.step, d.change.If, d.change.IfDue = name, stands.Token, due
}

// retryAfter is how long to stay away from a record that somebody runs: the
// older the claim, the longer, between a fifth of a second and half a minute.
func retryAfter(stands store.Record) time.Duration {
	wait := stands.Since / 2
	if stands.State == store.Pending {
		wait = stands.Due
	}
	return min(max(wait, 200*time.Millisecond), 30*time.Second)
}
