package semel

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// look asks the domain for evidence, and heals the record when there is some.
func (q *ask) look(ctx context.Context, stands store.Record, e *event) (store.Record, error) {
	found, err := q.c.evidence(ctx, q.call.op, stands)
	if err != nil {
		// Not having been able to look proves less than nothing: no doubt is
		// recorded, and whoever asks stays where they are.
		if stands.State == store.InDoubt {
			return stands, fmt.Errorf("%w: look for evidence: %w", ErrInDoubt, err)
		}
		return stands, fmt.Errorf("%w: look for evidence: %w", &waitError{after: retryAfter(stands)}, err)
	}
	if found == nil {
		e.looked = true
		return stands, nil
	}
	healed, now, err := q.c.heal(ctx, stands, found, q.attempt.times.retention)
	if err != nil {
		return now, fmt.Errorf("%w: heal: %w", ErrUnavailable, err)
	}
	if !healed {
		e.looked = false
	}
	return now, nil
}

// evidence asks the operation's probe and returns the outcome it found, or nil.
func (c *Core) evidence(ctx context.Context, op *operation, stands store.Record) ([]byte, error) {
	result, found, err := op.policy.probe(ctx, Scope{text: stands.Scope}, stands.Key)
	if err != nil || !found {
		return nil, err
	}
	e, _ := c.outcome(result)
	return e.outcome, nil
}

// heal records what evidence shows.
func (c *Core) heal(ctx context.Context, stands store.Record, outcome []byte, keep time.Duration) (bool, store.Record, error) {
	e := event{step: stepHeal, owner: newOwner(), outcome: outcome, expire: keep}
	d, now, err := c.act(ctx, stands, e, askTries)
	healed := err == nil && d.say == sayTry
	if healed {
		c.see(ctx, EventHealed, now, nil)
	}
	return healed, now, err
}
