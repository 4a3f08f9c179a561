package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
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

// retry reports whether a transaction that was rolled back with err is to run
// again. Before it returns true it waits, with jittered exponential backoff. After
// the first superseded write it does not wait, because nothing is to be waited for.
func (c *conflictCounter) retry(ctx context.Context, err error) bool {
	outrun := errors.Is(err, store.ErrSuperseded)
	if !outrun && !errors.Is(err, store.ErrConflict) {
		return false
	}
	if c.lost++; c.lost >= conflictTries {
		return false
	}
	return outrun && c.lost == 1 || pause(ctx, jitter(time.Millisecond<<c.lost)) == nil
}

// isConflict reports whether the database aborted a transaction because of a
// conflict.
func isConflict(verdict store.Verdict, err error) bool {
	return verdict == store.NotCommitted && errors.Is(err, store.ErrConflict)
}

// conflictEvent distinguishes a conflict with another transaction from a write that
// was superseded.
func conflictEvent(err error) EventKind {
	if errors.Is(err, store.ErrSuperseded) {
		return EventFenced
	}
	return EventRetried
}

// isInfraError reports whether a transaction ended because of its circumstances, so
// that its function's error is not the operation's answer.
func isInfraError(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInterrupted) || errors.Is(err, store.ErrSuperseded) ||
		errors.Is(err, store.ErrNoPartition)
}

// infraCause is the error of a transaction that ended because of its circumstances.
// It hides the marks of the function's error, which was based on data that is no
// longer true.
type infraCause struct{ err error }

func (e *infraCause) Error() string        { return e.err.Error() }
func (e *infraCause) Is(target error) bool { return errors.Is(e.err, target) }

func (e *infraCause) As(target any) bool {
	if _, mark := target.(**markedError); mark {
		return false
	}
	return errors.As(e.err, target)
}

// infraError returns the error of such a transaction. ran says whether its function
// ran.
func infraError(err error, ran bool) error { return &txError{err: &infraCause{err}, ran: ran} }
