package protocol

import (
	"time"

	"github.com/semelgo/semel/store"
)

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
		if e.Issued {
			d.Answer = Lost
		}
		return !e.Issued
	case store.Pending:
		if e.isTooLate(current) {
			d.Answer = Expired
			return false
		}
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

// isTooLate reports whether an issued record is too old for a first attempt. An
// attempt that may have had an effect is repeated at any age, and a write is voided
// at any age.
func (e *Event) isTooLate(current *store.Record) bool {
	return e.Issued && e.Step != StepVoid && !current.Tainted && current.Age >= e.MaxAge
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

// RetryAfter is how long a caller should wait for a running attempt: half the age
// of its claim, at most until its lease ends, at least 200 ms and at most 30 s.
func RetryAfter(current store.Record) time.Duration {
	wait := current.Since / 2
	switch current.State {
	case store.Pending:
		wait = current.Due
	case store.InProgress:
		wait = min(wait, current.Due)
	case store.Absent, store.Succeeded, store.Failed, store.InDoubt:
	}
	return min(max(wait, 200*time.Millisecond), 30*time.Second)
}
