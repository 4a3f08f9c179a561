package semel

import (
	"time"

	"github.com/semelgo/semel/store"
)

// event is what somebody wants of a record: with what stands, it is all the
// transition function knows.
type event struct {
	step step

	// token is the leader's own, of the attempt it wants to end or prolong.
	token store.Token
	// owner is drawn for this write by everybody who is not ending their own
	// attempt.
	owner uint64

	policy policyKind
	// looked says that the probe was asked and found nothing.
	probed bool
	// to is the state asked for, where a step leads to several.
	to store.State
	// proven says that nothing was committed by the attempt that ends.
	proven bool
	// owned says that the system, not a caller, chose the key.
	owned bool

	// of is the request that the record must be of. Nil: not asked.
	request request
	// identity is what a new record is created with.
	identity store.Record

	lease   time.Duration // of a claim or a heartbeat
	delay   time.Duration // until what becomes Pending is due
	expire  time.Duration // until what becomes final or Pending may be purged; 0: never
	outcome []byte
	// taints says that the attempt may have had an effect outside of what its policy
	// protects.
	taints bool
}

// request tells whether a record belongs to it.
type request interface {
	compare(r store.Record) requestMatch
}

// say is what the transition function answers when it makes no change.
type answer uint8

const (
	// sayTry: the change is to be tried.
	answerApply answer = iota
	// sayReplay: the record is final, answer from it.
	answerReplay
	// sayWait: somebody runs it, or it is not due.
	answerWait
	// sayDoubt: nobody runs it and nobody knows.
	answerInDoubt
	// sayLook: ask the domain for evidence first.
	answerProbe
	// sayMismatch: the key stands for another request.
	answerMismatch
	// sayNewer: a newer version of the program made the record, and this one cannot tell
	// whether the request is the same.
	answerNewer
	// sayLost: the asker's token stands no more.
	answerLost
	// sayRefuse: the table has no such step.
	answerRefuse
)

// decision is what the transition function answers.
type decision struct {
	answer answer
	step   step // the table's row, when say is sayTry
	change store.Change
}

// identityOn makes of to what the record that stands is to keep of the identity: the
// input is written when nothing stands, and then kept.
func (e *event) identityOn(current, to *store.Record) {
	*to = e.identity
	if current.State != store.Absent {
		to.Input = nil
	}
}
