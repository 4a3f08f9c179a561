package store

import (
	"context"
	"time"
)

// Note records an operator's change of a record.
type Note struct {
	ID     ID
	From   Token
	To     Token
	Actor  string        // the operator, as the caller names them
	Reason string        // the reason, in the operator's words
	Age    time.Duration // since the change; only read
}

// Auditor is a store that keeps notes about operators' changes for ever.
type Auditor interface {
	// SwapNoted is Swap of one change. If the change is applied, the note is stored
	// in the same transaction. Repeating it stores no second note.
	SwapNoted(ctx context.Context, c Change, n Note) (SwapResult, error)
	// Notes lists the notes about a record, oldest first.
	Notes(ctx context.Context, id ID) ([]Note, error)
}
