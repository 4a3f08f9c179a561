package store

import (
	"context"
	"time"
)

// Count is the number of an operation's records in one state.
type Count struct {
	Operation string
	State     State
	Records   int64
	Overdue   int64 // of Pending and InProgress: with a Due in the past
	Purgeable int64 // that Purge would remove
	// DeadLetters counts the Failed and InDoubt records whose Outcome begins with DeadLetterMark.
	DeadLetters int64
	Oldest      time.Duration // the longest time that one of them has been in the state
}

// DeadLetterMark is the first byte of the Outcome of a task or a message that is not tried
// again until an operator redrives it.
const DeadLetterMark = 'd'

// Counter is a store that counts its records, for reports. Counting may read all
// records, so it is too slow for every request.
type Counter interface {
	// Counts returns a Count for each operation and state with a record, sorted by
	// operation and state, from one snapshot.
	Counts(ctx context.Context) ([]Count, error)
}
