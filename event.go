package semel

import (
	"time"

	"github.com/semelgo/semel/store"
)

// event is a requested step with its data. The transition function knows nothing
// but the event and the current record.
type event struct {
	step step

	// token is the token of the leader that ends or renews its attempt.
	token store.Token
	// owner is a random number for this write. The leader's own end does not use
	// it.
	owner uint64

	policy policyKind
	// probed means that the probe found nothing.
	probed bool
	// to is the new state, for steps that lead to several.
	to store.State
	// proven means that the ending attempt has proof that it did not commit.
	proven bool
	// owned means that the system, and not a caller, chose the key.
	owned bool

	// request is the request that must have made the record. Nil: not checked.
	request request
	// identity is the identity of a new record.
	identity store.Record

	lease   time.Duration // of a claim or a heartbeat
	delay   time.Duration // until a Pending record is due
	expire  time.Duration // until a final or Pending record may be purged; 0: never
	outcome []byte
	// taints means that the attempt may have had an effect outside of what its
	// policy protects.
	taints bool
}

// request compares a record with a request.
type request interface {
	compare(r store.Record) requestMatch
}

// answer is the answer of the transition function.
type answer uint8

const (
	// answerApply: write the change.
	answerApply answer = iota
	// answerReplay: the record is final; return its outcome.
	answerReplay
	// answerWait: an attempt is running, or the record is not due.
	answerWait
	// answerInDoubt: no attempt is running, and the effect is unknown.
	answerInDoubt
	// answerProbe: probe for evidence first.
	answerProbe
	// answerMismatch: the record belongs to another request.
	answerMismatch
	// answerNewer: a newer version of the program made the record, and this version
	// cannot compare the requests.
	answerNewer
	// answerLost: the leader's token is no longer current.
	answerLost
	// answerRefuse: the table has no such step.
	answerRefuse
)

// decision is the result of the transition function.
type decision struct {
	answer answer
	step   step // the table's row, for answerApply
	change store.Change
}

// identityOn sets *to to the identity of the changed record. The input is written
// by the first write only.
func (e *event) identityOn(current, to *store.Record) {
	*to = e.identity
	if current.State != store.Absent {
		to.Input = nil
	}
}
