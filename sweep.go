package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Swept counts what one pass of Sweep did.
type Swept struct {
	Requeued int // Pending again: the policy runs again
	Doubted  int // InDoubt: needs evidence or a person
	Healed   int // Succeeded: the evidence was there
}

// Sweep makes one pass over the records whose leader's lease is over, of the
// operations the engine was given, at most limit of each, and frees them as
// their policy says. Nothing depends on it: a retry of the key does the same.
// Any number of processes may sweep at once. It returns what it did before an
// error; a probe that cannot look keeps only its own record waiting.
func (c *Core) Sweep(ctx context.Context, limit int) (Swept, error) {
	var swept Swept
	var blind error // what kept probes from looking
	for _, declared := range c.options.Operations {
		unseen, err := c.sweepOperation(ctx, declared.declared(), limit, &swept)
		blind = errors.Join(blind, unseen)
		if err != nil {
			return swept, seal(errors.Join(blind, err))
		}
	}
	return swept, seal(blind)
}

// sweepOperation makes one pass over the records of op. Those that cannot be
// freed, because their probe cannot look or somebody's open transaction holds them,
// are passed over, so that they do not keep the others from being found. It returns
// what kept probes from looking.
func (c *Core) sweepOperation(ctx context.Context, op *operation, limit int, swept *Swept) (blind, err error) {
	for skip := 0; limit > 0; {
		page := min(limit, store.MaxLimit)
		records, err := c.store.Scan(ctx, store.Query{State: store.InProgress, Operation: op.name, Due: true, Skip: skip, Limit: page})
		if err != nil {
			return blind, fmt.Errorf("%w: scan %s: %w", ErrUnavailable, op.name, err)
		}
		stuck := 0
		for _, r := range records {
			freed, err := c.sweep(ctx, op, r, swept)
			if !freed {
				stuck++
			}
			switch _, look := errors.AsType[*probeError](err); {
			case look && ctx.Err() == nil:
				blind = err
			case err != nil:
				return blind, fmt.Errorf("sweep %s: %w", op.name, err)
			}
		}
		if len(records) < page {
			break
		}
		skip, limit = skip+stuck, limit-len(records)+stuck
	}
	return blind, nil
}

// lookError says that a probe could not look.
type probeError struct {
	operation string
	err       error
}

func (e *probeError) Error() string {
	return "sweep " + e.operation + ": look for evidence: " + e.err.Error()
}
func (e *probeError) Unwrap() error { return e.err }

// crashed is what is kept of an attempt whose lease ran out.
func (c *Core) crashed(op *operation, r store.Record) []byte {
	p, _ := ProgressOf(r)
	return c.progress(p.with(r.Attempt, TryCrash, nil), op, r.ID)
}

// sweep frees one record, unless somebody else has been quicker or holds it.
func (c *Core) sweep(ctx context.Context, op *operation, r store.Record, swept *Swept) (freed bool, err error) {
	keep := c.options.timesOf(op, r.ID).retention
	e := event{step: stepRequeue, owner: newOwner(), policy: op.policy.kind, expire: keep, outcome: c.crashed(op, r)}
	d := next(r, e)
	if d.answer == answerProbe {
		outcome, err := c.evidence(ctx, op, r)
		if err != nil {
			return false, &probeError{op.name, err}
		}
		if outcome != nil {
			return c.sweepHealed(ctx, r, outcome, keep, swept)
		}
		e.probed = true
		d = next(r, e)
	}
	if d.answer != answerApply {
		return false, nil
	}
	answer, err := c.swap(ctx, &d.change, askTries)
	if err != nil || !answer.Applied(d.change) {
		return false, err
	}
	if d.change.To.State == store.InDoubt {
		swept.Doubted++
		c.emit(ctx, EventInDoubt, d.change.To, nil)
		return true, nil
	}
	swept.Requeued++
	c.emit(ctx, EventSwept, d.change.To, nil)
	return true, nil
}

// sweepHealed settles a record by the evidence that was found.
func (c *Core) sweepHealed(ctx context.Context, r store.Record, outcome []byte, keep time.Duration, swept *Swept) (freed bool, err error) {
	healed, _, err := c.heal(ctx, r, outcome, keep)
	switch {
	case errors.Is(err, errBusy):
		return false, nil
	case healed:
		swept.Healed++
	}
	return err == nil, err
}
