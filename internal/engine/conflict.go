package engine

import (
	"context"
	"time"

	"github.com/semelgo/semel/event"
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
func conflictEvent(result protocol.TxResult) event.Kind {
	if result == protocol.TxSuperseded {
		return event.Fenced
	}
	return event.Retried
}
