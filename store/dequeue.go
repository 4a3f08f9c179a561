package store

import (
	"context"
	"fmt"
	"time"
)

// The priorities a record may have. Higher goes first; zero is the ordinary one.
const (
	MinPriority = -4
	MaxPriority = 4
)

// Dequeue asks for waiting records of one operation.
type Dequeue struct {
	Operation string
	Limit     int           // the most records: 1 to MaxBatch
	Owner     uint64        // what stands as Owner in those that are claimed; drawn for this call
	Lease     time.Duration // until their Due
	// Again claims nothing, and asks neither for Limit nor for Lease. It gives,
	// because an answer was lost, all that earlier calls with this Owner have
	// claimed and that still stands so.
	Again bool
}

// Check finds what keeps d from being tried, whatever waits, where maxBatch bounds
// the Limit. The error names the field.
func (d *Dequeue) Check(maxBatch int) error {
	if !d.Again && (d.Limit < 1 || d.Limit > maxBatch) {
		return fmt.Errorf("limit is %d, not from 1 to %d", d.Limit, maxBatch)
	}
	return nil
}

// Claim is the change that d makes to a record that waits, as a Swap would be
// asked for it.
func (d *Dequeue) Claim(waits Record) Change {
	to := waits
	to.Token = Token{State: InProgress, Attempt: waits.Attempt + 1, Owner: d.Owner}
	to.Due, to.Expire = d.Lease, 0
	to.Input, to.Outcome = nil, nil // kept
	return Change{If: waits.Token, IfDue: true, To: to}
}

// Dequeuer is a store that finds and claims waiting records in one round trip.
type Dequeuer interface {
	// Dequeue takes, of the Pending records of the operation whose Due has come,
	// those of the highest Priority first, and of these the ones that have been
	// due for longest. To each it makes the very change that a Swap would, if the
	// token still stands and the Due has come at the write: InProgress, the next
	// attempt, the Owner, Due after the Lease, no Expire, everything else kept.
	// It answers in that order with the records as they stand afterwards.
	//
	// Records that an open transaction of somebody else holds are passed over.
	// Calls at the same time never get the same record, and do not wait for each
	// other. On a non-nil error nothing is known: any of them may be claimed, or
	// may yet be.
	Dequeue(ctx context.Context, d Dequeue) ([]Record, error)
}
