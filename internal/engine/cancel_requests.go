package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// cancelOperation is the operation of records that request the cancellation of a
// running attempt. Only the leader may write the record of a running attempt, so a
// request is a record of its own. The leader reads it with each heartbeat.
const cancelOperation = "semel.cancel"

// cancelRecord returns the identity of the record that requests the cancellation of
// id's attempt.
func cancelRecord(id store.ID) store.Record {
	r := store.Record{Operation: cancelOperation, Scope: sharedScope, Key: id.String()}
	r.ID = store.NewID(r.Operation, r.Scope, r.Key)
	return r
}

// checkCancelRequests cancels the attempts whose keys were cancelled.
func checkCancelRequests(ctx context.Context, c *Core, attempts []*Attempt) {
	ids := make([]store.ID, len(attempts))
	for i, a := range attempts {
		ids[i] = cancelRecord(a.call.id).ID
	}
	asked, err := c.store.Get(ctx, ids)
	if err != nil {
		c.emit(ctx, event.StoreError, store.Record{Operation: cancelOperation}, err)
		return
	}
	for i, a := range attempts {
		if r := recordOf(asked[i]); r.State == store.Pending && r.Expire >= 0 && isCancelRequest(a, r) {
			a.cancel(&callerr.CancelledError{Of: a, Reason: codec.DecodeFailure(r.Outcome).Message})
		}
	}
}

// isCancelRequest reports whether the request is for this attempt's record, and not
// for an earlier record of the same key. The earlier record was kept for its
// retention; half of the retention is more than clocks may differ by.
func isCancelRequest(a *Attempt, asked store.Record) bool {
	age := a.Record().Age + clock.Since(a.begun)
	return asked.Since <= age+a.times.Retention/2
}

// withdrawCancel withdraws a request of [Cancel] for attempts that have ended.
func withdrawCancel(ctx context.Context, c *Core, current store.Record) error {
	asked, err := c.reader.get(ctx, cancelRecord(current.ID).ID)
	if err == nil { // a request that is not Pending does not change
		_, _, err = c.writer.settle(ctx, asked, protocol.Event{Step: protocol.StepCancel, Owner: newOwner(), Expire: c.retention(current)})
	}
	if err != nil {
		return fmt.Errorf("%w: withdraw the cancellation: %w", callerr.ErrUnavailable, err)
	}
	return nil
}
