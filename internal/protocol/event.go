package protocol

import (
	"time"

	"github.com/semelgo/semel/store"
)

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
