package codec

import (
	"github.com/semelgo/semel/store"
)

// outcomeDeadLetter is the first byte of the outcome of a dead letter. A stored
// failure follows, in the state Failed as well as InDoubt. No function can store
// this byte by itself, so a caller's failed key never looks like a dead letter.
const outcomeDeadLetter = store.DeadLetterMark

// IsDeadLetter reports whether r is a dead letter: a task or a message that is not
// tried again, because its attempts are used up or because its consumer rejected
// the message. It is Failed, or InDoubt under a policy that allows another attempt.
// The record itself says so, in the first byte of its outcome, "d"; the operation's
// definition is not needed. Dead letters are kept for [Retry].DeadLetterRetention,
// and [Redrive] accepts them.
func IsDeadLetter(r store.Record) bool {
	return (r.State == store.Failed || r.State == store.InDoubt) && len(r.Outcome) > 0 && r.Outcome[0] == outcomeDeadLetter
}

// EncodeDeadLetter stores err as the reason why a record is a dead letter, no longer
// than limit.
func EncodeDeadLetter(err error, limit int) []byte {
	outcome := EncodeFailure(err, limit)
	outcome[0] = outcomeDeadLetter
	return outcome
}
