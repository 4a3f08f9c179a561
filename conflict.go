package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
)

// conflictTries is how often a transaction is run that keeps losing to others.
const conflictTries = 8

// conflicts counts how often the transactions of one attempt have lost to
// others. A database then asks for all of it to be run again: what they read is
// not true any more, whatever the function made of it.
type conflictCounter struct {
	lost int
}

// again reports whether a transaction that was rolled back with err is to be run
// once more, and waits before it says yes: each time longer, and nobody as long as
// another. Who lost to what stands in the record's place has nothing to wait for
// the first time.
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

// conflicting reports whether the database gave a transaction up in favour of
// others.
func isConflict(verdict store.Verdict, err error) bool {
	return verdict == store.NotCommitted && errors.Is(err, store.ErrConflict)
}

// eventOfLoss tells those apart that lost to another transaction and those that
// lost to what another has written in the record's place.
func conflictEvent(err error) EventKind {
	if errors.Is(err, store.ErrSuperseded) {
		return EventFenced
	}
	return EventRetried
}

// notTheAnswer reports whether a transaction ended by its circumstances, so that
// what its function said of it is nobody's answer.
func isInfraError(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInterrupted) || errors.Is(err, store.ErrSuperseded) ||
		errors.Is(err, store.ErrNoPartition)
}

// lostError is an error within a transaction that was not the function's to end.
// What the function has marked it with is no part of it: it concluded that from
// what is not true any more.
type infraCause struct{ err error }

func (e *infraCause) Error() string        { return e.err.Error() }
func (e *infraCause) Is(target error) bool { return errors.Is(e.err, target) }

func (e *infraCause) As(target any) bool {
	if _, mark := target.(**markedError); mark {
		return false
	}
	return errors.As(e.err, target)
}

// lostOut is what is told of such a transaction, whose function ran or did not.
func infraError(err error, ran bool) error { return &txError{err: &infraCause{err}, ran: ran} }
