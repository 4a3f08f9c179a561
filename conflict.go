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
type conflicts struct {
	lost int
}

// again reports whether a transaction that ended so is to be run once more, and
// waits before it says yes. Each time it waits longer, and nobody as long as
// another.
func (c *conflicts) again(ctx context.Context, verdict store.Verdict, err error) bool {
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrConflict) {
		return false
	}
	if c.lost++; c.lost >= conflictTries {
		return false
	}
	return pause(ctx, jitter(time.Millisecond<<c.lost)) == nil
}

// lostError is the text of an error within a transaction that lost. What the
// function has marked the error with is no part of it: it concluded that from
// what is not true any more.
type lostError struct{ text string }

func (e *lostError) Error() string        { return e.text }
func (e *lostError) Is(target error) bool { return target == store.ErrConflict }

// lostOut is what is told of a transaction that lost to others to the end.
func lostOut(err error) error { return &txError{&lostError{err.Error()}} }
