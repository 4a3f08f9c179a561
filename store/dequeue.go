package store

import (
	"context"
	"fmt"
	"time"
)

// The range of priorities. Higher priorities are claimed first; zero is the
// default.
const (
	MinPriority = -4
	MaxPriority = 4
)

// Dequeue requests Pending records of one operation.
type Dequeue struct {
	Operation string
	Limit     int           // the largest number of records: 1 to MaxBatch
	Owner     uint64        // the Owner of the claims; a new random number, which only repeated calls share
	Lease     time.Duration // the time until their Due
	// Reread makes no claims, and ignores Limit and Lease. It returns all claims
	// that earlier calls with this Owner have made and that are still current.
	Reread bool
}

// Check returns why d is invalid. maxBatch bounds the Limit. The error names the
// field.
func (d *Dequeue) Check(maxBatch int) error {
	if !d.Reread && (d.Limit < 1 || d.Limit > maxBatch) {
		return fmt.Errorf("limit is %d, not from 1 to %d", d.Limit, maxBatch)
	}
	return nil
}

// Claim returns the change with which a Swap would claim a Pending record for d.
func (d *Dequeue) Claim(waits Record) Change {
	to := waits
	to.Token = Token{State: InProgress, Attempt: waits.Attempt + 1, Owner: d.Owner}
	to.Due, to.Expire = d.Lease, 0
	to.Input, to.Outcome = nil, nil // the current ones are kept
	return Change{If: waits.Token, IfDue: true, To: to}
}

// Dequeuer is a store that finds and claims Pending records in one round trip.
type Dequeuer interface {
	// Dequeue claims due Pending records of the operation: those of the highest
	// Priority first, and of these the ones that have been due for longest. It
	// makes the same change as a Swap would, if the token is current and the record
	// is due at the write: InProgress, the next attempt, the Owner, Due after the
	// Lease, no Expire, everything else kept. It returns the changed records in
	// that order.
	//
	// It skips records that another open transaction holds. Concurrent calls never
	// claim the same record, and calls with different Owners do not wait for each
	// other. After an error nothing is known: any of the records may be claimed, now
	// or later.
	//
	// So repeating a call is safe. While a claim that an earlier call with the same
	// Owner and Operation has made is current, a call claims nothing and returns the
	// current claims of that Owner. When none is current, the call claims again. All
	// of this holds for concurrent calls with the same Owner, too, but those may
	// return no records.
	Dequeue(ctx context.Context, d Dequeue) ([]Record, error)
}
