package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// look probes for evidence, and heals the record if the probe finds the effect.
func (q *claimer) look(ctx context.Context, current store.Record, e *protocol.Event) (store.Record, error) {
	found, err := q.c.evidence(ctx, q.call.op, current)
	if err != nil {
		// A failed probe proves nothing, so no doubt is recorded.
		_, answer := q.c.answer(ctx, q.call, current)
		return current, fmt.Errorf("%w: probe: %w", answer, err)
	}
	if found == nil {
		e.Probed = true
		return current, nil
	}
	healed, now, err := q.c.heal(ctx, current, found, q.attempt.times.Retention)
	if err != nil {
		return now, fmt.Errorf("%w: heal: %w", callerr.ErrUnavailable, err)
	}
	if !healed {
		e.Probed = false
	}
	return now, nil
}

// heal records the outcome that the evidence shows.
func (c *Core) heal(ctx context.Context, current store.Record, outcome []byte, keep time.Duration) (bool, store.Record, error) {
	e := protocol.Event{Step: protocol.StepHeal, Owner: newOwner(), Outcome: outcome, Expire: keep}
	d, now, err := c.writer.settle(ctx, current, e)
	healed := err == nil && d.Answer == protocol.Apply
	if healed {
		c.emit(ctx, event.Healed, now, nil)
	}
	return healed, now, err
}
