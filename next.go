package semel

import (
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// next is the protocol: what may become of the record that stands, when
// somebody wants e. It is pure; every write of Semel is one of its changes.
func next(stands store.Record, e event) decision { return nextOf(&stands, &e) }

// nextOf is next, with both handed on as they are: they are large. It changes neither.
func nextOf(stands *store.Record, e *event) decision {
	switch e.step {
	case stepClaim:
		return nextClaim(stands, e)
	case stepInline, stepVoid:
		return nextInline(stands, e)
	case stepHeartbeat:
		return nextHeartbeat(stands, e)
	case stepSucceed, stepFail, stepRelease, stepDoubt:
		return nextEnd(stands, e)
	case stepHeal:
		return nextHeal(stands, e)
	case stepRequeue:
		if e.token != (store.Token{}) {
			return nextEnd(stands, e)
		}
		return nextSweep(stands, e)
	case stepResolve:
		return nextResolve(stands, e)
	case stepCreate, stepReschedule, stepCancel, stepRedrive:
		return nextQueue(stands, e)
	case stepTakeover, stepSettle, stepPurge:
		// Nobody asks for these: a claim becomes a takeover, a leader's end
		// becomes a settle, and only stores purge.
	}
	return decision{say: sayRefuse}
}

// nextClaim lets the asker lead a new attempt, or says why it may not.
func nextClaim(stands *store.Record, e *event) decision {
	if d, ok := mayStart(stands, e); !ok {
		return d
	}
	to := e.identityOn(stands)
	to.Token = store.Token{State: store.InProgress, Attempt: stands.Attempt + 1, Owner: e.owner}
	to.Due = e.lease
	name := stepClaim
	if stands.State == store.InProgress {
		name = stepTakeover
	}
	to.Tainted = taint(stands, e.policy)
	return try(name, stands, to)
}

// nextInline ends an attempt that was never visible: what stood before it is
// replaced by its end in one write.
func nextInline(stands *store.Record, e *event) decision {
	if d, ok := mayStart(stands, e); !ok {
		return d
	}
	if e.to == store.Failed && taint(stands, e.policy) {
		return decision{say: sayRefuse}
	}
	to := e.identityOn(stands)
	to.Token = store.Token{State: e.to, Attempt: stands.Attempt + 1, Owner: e.owner}
	to.Tainted = taint(stands, e.policy)
	to.Outcome = e.outcome
	to.Due, to.Expire = e.delay, expiry(len(stands.Input)+len(to.Input) > 0, e.to, e)
	d := try(e.step, stands, to)
	if e.step == stepVoid {
		// The commit that must be ruled out may reach the database late, when
		// a lease that was over has been renewed and has run out again.
		d.change.IfDue = false
	}
	return d
}

// mayStart says whether a new attempt may begin on what stands. If not, the
// decision says what to do instead.
func mayStart(stands *store.Record, e *event) (decision, bool) {
	if stands.State != store.Absent && e.of != nil && !e.of.is(*stands) {
		return decision{say: sayMismatch}, false
	}
	switch stands.State {
	case store.Absent:
		return decision{}, true
	case store.Pending:
		return decision{say: sayWait}, stands.Due <= 0
	case store.Succeeded, store.Failed:
		return decision{say: sayReplay}, false
	case store.InProgress, store.InDoubt:
		return mayStartAgain(stands, e)
	default:
		// A state of a newer version is a stop, never an absence.
		return decision{say: sayRefuse}, false
	}
}

func mayStartAgain(stands *store.Record, e *event) (decision, bool) {
	if e.policy == policyHeal && !e.looked {
		return decision{say: sayLook}, false
	}
	if stands.State == store.InDoubt {
		return decision{say: sayDoubt}, false
	}
	if stands.Due > 0 {
		return decision{say: sayWait}, false
	}
	if e.policy.runsAgain() {
		return decision{}, true
	}
	return doubtBy(e.owner, stands), false
}

// taint tells whether an attempt that starts on what stands follows one that
// may have had an effect nobody knows of. Under Atomic an attempt that was
// taken over can never commit, so it leaves no taint.
func taint(stands *store.Record, p policyKind) bool {
	return stands.Tainted || stands.State == store.InProgress && p != policyAtomic
}

// nextHeartbeat renews the lease. Expiry is a permission for others, not a
// loss: while nobody took over, a late heartbeat is as good as an early one.
func nextHeartbeat(stands *store.Record, e *event) decision {
	if stands.Token != e.token {
		return decision{say: sayLost}
	}
	to := *stands
	to.Due, to.Expire = e.lease, 0
	to.Input, to.Outcome = nil, nil
	return decision{step: stepHeartbeat, change: store.Change{If: stands.Token, To: to}}
}

// nextEnd lets the leader end its attempt, or settle the doubt that somebody
// else recorded about it meanwhile.
func nextEnd(stands *store.Record, e *event) decision {
	settles := stands.State == store.InDoubt && stands.Attempt == e.token.Attempt
	if stands.Token != e.token && !settles {
		return decision{say: sayLost}
	}
	state, ok := endState(stands, e)
	if !ok {
		return decision{say: sayRefuse}
	}
	to := ended(stands, store.Token{State: state, Attempt: e.token.Attempt, Owner: e.token.Owner}, e)
	if e.step == stepRequeue {
		to.Tainted = taint(stands, e.policy)
	}
	if !settles {
		return decision{step: endStep(e.step, state), change: store.Change{If: stands.Token, To: to}}
	}
	if !state.Final() {
		return decision{say: sayDoubt}
	}
	return decision{step: stepSettle, change: store.Change{If: stands.Token, To: to}}
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

// nextHeal records the effect that evidence shows. It draws a new owner, so
// that a leader still alive learns that it lost and answers with this.
func nextHeal(stands *store.Record, e *event) decision {
	if stands.State.Final() {
		return decision{say: sayReplay}
	}
	if !stands.State.Unfinished() {
		return decision{say: sayLost}
	}
	to := ended(stands, store.Token{State: store.Succeeded, Attempt: stands.Attempt, Owner: e.owner}, e)
	return decision{step: stepHeal, change: store.Change{If: stands.Token, To: to}}
}

// nextSweep frees what a dead leader left, as the policy says.
func nextSweep(stands *store.Record, e *event) decision {
	if stands.State != store.InProgress {
		return decision{say: sayLost}
	}
	if d, ok := mayStartAgain(stands, e); !ok {
		if d.say == sayTry {
			d.change.To.Outcome = e.outcome
		}
		return d
	}
	to := ended(stands, store.Token{State: store.Pending, Attempt: stands.Attempt, Owner: e.owner}, e)
	to.Tainted = taint(stands, e.policy)
	return try(stepRequeue, stands, to)
}

// nextResolve is a person's word on a record in doubt. Pending is their word
// that nothing happened, so the taint goes.
func nextResolve(stands *store.Record, e *event) decision {
	if stands.State != store.InDoubt || e.to != store.Pending && !e.to.Final() {
		return decision{say: sayRefuse}
	}
	to := ended(stands, store.Token{State: e.to, Attempt: stands.Attempt, Owner: e.owner}, e)
	to.Tainted = false
	return decision{step: stepResolve, change: store.Change{If: stands.Token, To: to}}
}

// nextQueue is what callers and people do with records that nobody runs.
func nextQueue(stands *store.Record, e *event) decision {
	state := store.Pending
	if e.step == stepCancel {
		state = store.Failed
	}
	switch {
	case e.step == stepCreate && stands.State == store.Absent:
	case e.step == stepCreate && e.of != nil && !e.of.is(*stands):
		return decision{say: sayMismatch}
	case e.step == stepCreate:
		return decision{say: sayReplay}
	case e.step == stepRedrive && stands.State == store.Failed && e.owned:
	case e.step == stepReschedule && stands.State == store.Pending:
	case e.step == stepCancel && stands.State == store.Pending && !stands.Tainted:
	default:
		return decision{say: sayRefuse}
	}
	to := ended(stands, store.Token{State: state, Attempt: stands.Attempt, Owner: e.owner}, e)
	if e.step == stepCreate {
		identity := e.identity
		identity.Token, identity.Due, identity.Expire = to.Token, to.Due, to.Expire
		to = identity
	}
	return decision{step: e.step, change: store.Change{If: stands.Token, To: to}}
}

func doubtBy(owner uint64, stands *store.Record) decision {
	to := ended(stands, store.Token{State: store.InDoubt, Attempt: stands.Attempt, Owner: owner}, &event{})
	return try(stepDoubt, stands, to)
}

// ended is the record that stands once it is t, with the times and the outcome
// of e. The outcome that stands is kept when e has none.
func ended(stands *store.Record, t store.Token, e *event) store.Record {
	to := *stands
	to.Token = t
	to.Due, to.Expire = 0, 0
	if t.State == store.Pending {
		to.Due = e.delay
	}
	if t.State == store.Pending || t.State.Final() {
		to.Expire = expiry(len(stands.Input) > 0, t.State, e)
	}
	to.Input, to.Outcome = nil, e.outcome
	return to
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

// try is a change that somebody else than the leader makes: what they found due
// must still be due at the write, by the store's clock.
func try(name step, stands *store.Record, to store.Record) decision {
	due := stands.State == store.Pending || stands.State == store.InProgress
	return decision{step: name, change: store.Change{If: stands.Token, IfDue: due, To: to}}
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
