package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// PolicyOf returns the policy of an operation that the engine was given, and whether it
// was given one of that name.
func PolicyOf(c *Core, operation string) (Policy, bool) {
	op := c.operations[operation]
	if op == nil {
		return Policy{}, false
	}
	return op.policy, true
}

// CallProbe calls the probe of an unfinished record's operation, and writes nothing. If the
// probe finds the effect, CallProbe returns the record as the evidence would complete it.
func CallProbe(ctx context.Context, c *Core, id store.ID) (r store.Record, found bool, err error) {
	current, err := c.reader.get(ctx, id)
	if err != nil {
		return store.Record{}, false, callerr.Seal(err)
	}
	op := c.operations[current.Operation]
	switch {
	case protocol.Next(current, protocol.Event{Step: protocol.StepHeal, Owner: newOwner()}).Answer != protocol.Apply:
		err = callerr.ErrNotInDoubt // no evidence could complete it
	case op == nil || !op.policy.HasProbe():
		err = callerr.ErrNoProbe
	default:
		var outcome []byte
		outcome, err = c.evidence(ctx, op, current)
		switch {
		case err != nil && ctx.Err() != nil:
			err = &callerr.ProbeError{Operation: op.name, Err: errors.Join(ctx.Err(), err)}
		case err != nil:
			err = &callerr.ProbeError{Operation: op.name, Err: err}
		case outcome != nil:
			current.State, current.Outcome, found = store.Succeeded, outcome, true
		}
	}
	r, err = publicRecord(current, err)
	return r, found, err
}
