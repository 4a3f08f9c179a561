package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// IssueOptions describe what Issue stores.
type IssueOptions struct {
	TTL     time.Duration
	Payload json.RawMessage
	MaxOpen int
}

// maxIssuedGrowth is how much the stored progress of a token grows by the counters of its
// attempts, in bytes.
const maxIssuedGrowth = 256

// Issue writes the Pending record of a call that [Call.Issued] then runs at most once.
func Issue(ctx context.Context, e Runner, c Call, o IssueOptions) error {
	return callerr.Seal(issue(ctx, e.core(), &c, o))
}

func issue(ctx context.Context, c *Core, call *Call, o IssueOptions) error {
	if err := call.valid(); err != nil {
		return err
	}
	switch {
	case o.TTL <= 0:
		return callerr.Invalid("TTL", "must be longer than zero")
	case o.MaxOpen < 0, o.MaxOpen > maxOpenLimit:
		return callerr.Invalid("MaxOpen", "must be 0 to "+strconv.Itoa(maxOpenLimit))
	}
	if err := c.checkOperation(call.op); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if err := c.notWithinTx(ctx, false); err != nil {
		return err
	}
	// The record stays longer than the token is valid, so that a late use gets the
	// error "expired" and not "unknown".
	retention := c.options.timesOf(call.op, call.id).Retention
	e := protocol.Event{
		Step: protocol.StepCreate, Owner: newOwner(), Request: call, Identity: call.identity(),
		Expire: o.TTL + min(retention, math.MaxInt64-o.TTL),
	}
	e.Identity.Outcome = c.progress(codec.Progress{Issued: &codec.Issued{MaxAge: o.TTL, Payload: o.Payload}}, call.op, call.id)
	if len(e.Identity.Outcome)+maxIssuedGrowth > c.caps.MaxOutcome {
		return callerr.Invalid("Payload", "is larger than the store keeps")
	}
	if o.MaxOpen > 0 {
		if err := c.reserveToken(ctx, call, o); err != nil {
			return err
		}
	}
	d := protocol.Next(store.Record{}, e)
	answer, err := c.writer.swapBatched(ctx, &d.Change, swapTries)
	switch {
	case errors.Is(err, callerr.ErrRefused):
		return fmt.Errorf("issue a token of %s: %w", call.op.name, err)
	case err != nil:
		return fmt.Errorf("%w: issue a token of %s: %w", callerr.ErrUnavailable, call.op.name, err)
	case !answer.Applied(d.Change): // a token of 256 random bits is never issued twice
		return fmt.Errorf("%w: issue a token of %s: the record is in use", callerr.ErrUnavailable, call.op.name)
	}
	return nil
}

// IssuedPayload returns the payload that was issued for the operation of ctx, and
// whether its record was issued.
func IssuedPayload(ctx context.Context) ([]byte, bool) {
	c, ok := ctx.Value(callKey{}).(Call)
	if !ok || c.issued == nil {
		return nil, false
	}
	return c.issued.payload, true
}
