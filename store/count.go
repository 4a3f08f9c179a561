package store

import (
	"context"
	"time"
)

// Count is how many records an operation has in one state.
type Count struct {
	Operation string
	State     State
	Records   int64
	Overdue   int64         // of Pending and InProgress: those whose Due has come
	Purgeable int64         // those that Purge would remove
	Oldest    time.Duration // the longest time any of them has been in the state
}

// Counter is a store that counts its records, for reports. It may read all of
// them: it is not for use on every request.
type Counter interface {
	// Counts gives one Count for each operation and state that has a record, in
	// the order of their names and states, all read at one moment.
	Counts(ctx context.Context) ([]Count, error)
}
