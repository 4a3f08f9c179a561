package store

import (
	"context"
	"time"
)

// Note says who changed a record by hand, and why.
type Note struct {
	ID     ID
	From   Token
	To     Token
	Actor  string        // who, as the caller names them
	Reason string        // why, in their words
	Age    time.Duration // how long ago; only read
}

// Auditor is a store that keeps, for ever, why records were changed by hand.
type Auditor interface {
	// SwapNoted is Swap of one change; if it is in force, the note is kept in
	// the same transaction. Asked again it keeps no second note.
	SwapNoted(ctx context.Context, c Change, n Note) (SwapResult, error)
	// Notes lists what was noted about a record, oldest first.
	Notes(ctx context.Context, id ID) ([]Note, error)
}
