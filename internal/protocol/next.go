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

// Event is a requested step with its data. The transition function knows nothing
// but the event and the current record.
type Event struct {
	Step Step

	// Token is the token of the leader that ends or renews its attempt.
	Token store.Token
	// Owner is a random number for this write. The leader's own end does not use
	// it.
	Owner uint64

	Policy Policy
	// Probed means that the probe found nothing.
	Probed bool
	// To is the new state, for steps that lead to several.
	To store.State
	// Proven means that the ending attempt has proof that it did not commit.
	Proven bool
	// Owned means that the system, and not a caller, chose the key.
	Owned bool
	// Issued means that an earlier step must have created the record: no attempt
	// creates it.
	Issued bool
	// MaxAge is the age from which an Issued record starts no attempt, unless an
	// earlier attempt may have had an effect.
	MaxAge time.Duration

	// Request is the request that must have made the record. Nil: not checked.
	Request Request
	// Identity is the identity of a new record.
	Identity store.Record

	Lease   time.Duration // of a claim or a heartbeat
	Delay   time.Duration // until a Pending record is due
	Expire  time.Duration // until a final or Pending record may be purged; 0: never
	Outcome []byte
}

// Request compares a record with a request.
type Request interface {
	Compare(r store.Record) RequestMatch
}

// RequestMatch is the result of comparing a request with a record's fingerprint.
type RequestMatch uint8

const (
	// SameRequest means that the record belongs to the request.
	SameRequest RequestMatch = iota
	// OtherRequest means that the record belongs to another request.
	OtherRequest
	// UnknownRequest means that a newer version of the program made the record, and
	// this one cannot compute its fingerprint.
	UnknownRequest
)

// Answer is the answer of the transition function.
type Answer uint8

const (
	// Apply: write the change.
	Apply Answer = iota
	// Replay: the record is final; return its outcome.
	Replay
	// Wait: an attempt is running, or the record is not due.
	Wait
	// InDoubt: no attempt is running, and the effect is unknown.
	InDoubt
	// Probe: probe for evidence first.
	Probe
	// Mismatch: the record belongs to another request.
	Mismatch
	// Newer: a newer version of the program made the record, and this version
	// cannot compare the requests.
	Newer
	// Lost: the leader's token is no longer current, or an issued record does not
	// exist.
	Lost
	// NotOwned: a caller, and not the system, chose the key.
	NotOwned
	// Expired: the record is too old for a first attempt.
	Expired
	// Refuse: the table has no such step.
	Refuse
)

// Decision is the result of the transition function.
type Decision struct {
	Answer Answer
	Step   Step // the table's row, for Apply
	Change store.Change
}

// Starts reports whether the decision starts an attempt that holds a claim.
func (d *Decision) Starts() bool { return d.Step == StepClaim || d.Step == StepTakeover }

// identityOn sets *to to the identity of the changed record. The input is written
// by the first write only.
func (e *Event) identityOn(current, to *store.Record) {
	*to = e.Identity
	if current.State != store.Absent {
		to.Input = nil
	}
}

// ClaimQueued returns the event that claims a Pending record for a worker. The input
// and the outcome of the record stay.
func ClaimQueued(current store.Record, owner uint64, policy Policy, lease time.Duration) Event {
	identity := current
	identity.Expire = 0
	identity.Input, identity.Outcome = nil, nil
	return Event{Step: StepClaim, Owner: owner, Policy: policy, Identity: identity, Lease: lease}
}
