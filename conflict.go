package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/protocol"
)

// conflictTries is how often a transaction runs that is aborted because of
// conflicts.
const conflictTries = 8

// conflictCounter counts the conflicts of one attempt's transactions. After a
// conflict the whole transaction must run again, because what it has read is no
// longer true.
type conflictCounter struct {
	lost int
}

// retry reports whether a transaction that was rolled back because of a conflict is
// to run again. Before it returns true it waits, with jittered exponential backoff.
// After the first superseded write it does not wait, because nothing is to be waited
// for.
func (c *conflictCounter) retry(ctx context.Context, result protocol.TxResult) bool {
	if c.lost++; c.lost >= conflictTries {
		return false
	}
	return result == protocol.TxSuperseded && c.lost == 1 || pause(ctx, jitter(time.Millisecond<<c.lost)) == nil
}

// conflictEvent distinguishes a conflict with another transaction from a write that
// was superseded.
func conflictEvent(result protocol.TxResult) EventKind {
	if result == protocol.TxSuperseded {
		return EventFenced
	}
	return EventRetried
}

// unmarkedError is the error of a transaction that ended because of its circumstances.
// It hides the marks of the function's error, which was based on data that is no
// longer true.
type unmarkedError struct{ err error }

func (e *unmarkedError) Error() string        { return e.err.Error() }
func (e *unmarkedError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *unmarkedError) As(target any) bool {
	if _, mark := target.(**markedError); mark {
		return false
	}
	return errors.As(e.err, target)
}

// infraError returns the error of such a transaction. ran says whether its function
// ran.
func infraError(err error, ran bool) error { return &txError{err: &unmarkedError{err}, ran: ran} }
