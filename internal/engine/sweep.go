package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Swept counts the changes of one pass of Sweep.
type Swept struct {
	Requeued int
	Doubted  int
	Healed   int
}

// Sweep makes one pass over the records with expired leases, of the operations that
// the engine was given, at most limit of each, and settles them as their policy
// says.
func Sweep(ctx context.Context, c *Core, limit int) (Swept, error) {
	var swept Swept
	var blind error // errors of probes
	for _, declared := range c.options.Operations {
		unseen, err := sweepOperation(ctx, c, declared.declared(), limit, &swept)
		blind = errors.Join(blind, unseen)
		if err != nil {
			return swept, callerr.Seal(errors.Join(blind, err))
		}
	}
	return swept, callerr.Seal(blind)
}

// sweepOperation makes one pass over the records of op. It skips records whose
// probe fails or that another open transaction holds, so that it finds the others.
// It returns the errors of probes.
func sweepOperation(ctx context.Context, c *Core, op *operation, limit int, swept *Swept) (blind, err error) {
	for skip := 0; limit > 0; {
		page := min(limit, store.MaxLimit)
		records, err := c.store.Scan(ctx, store.Query{State: store.InProgress, Operation: op.name, Due: true, Skip: skip, Limit: page})
		if err != nil {
			return blind, fmt.Errorf("%w: scan %s: %w", callerr.ErrUnavailable, op.name, err)
		}
		stuck := 0
		for _, r := range records {
			freed, err := sweepRecord(ctx, c, op, r, swept)
			if !freed {
				stuck++
			}
			switch _, look := errtype.Find[*callerr.ProbeError](err); {
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

// sweepRecord settles one record, unless it has changed or another transaction holds it.
func sweepRecord(ctx context.Context, c *Core, op *operation, r store.Record, swept *Swept) (freed bool, err error) {
	keep := c.options.timesOf(op, r.ID).Retention
	e := protocol.Event{Step: protocol.StepRequeue, Owner: newOwner(), Policy: op.policy.kind, Expire: keep, Outcome: c.crashed(op, r)}
	d := protocol.Next(r, e)
	if d.Answer == protocol.Probe {
		outcome, err := c.evidence(ctx, op, r)
		if err != nil {
			return false, &callerr.ProbeError{Operation: op.name, Err: err}
		}
		if outcome != nil {
			return sweepHealed(ctx, c, r, outcome, keep, swept)
		}
		e.Probed = true
		d = protocol.Next(r, e)
	}
	if d.Answer != protocol.Apply {
		return false, nil
	}
	answer, err := c.writer.swap(ctx, &d.Change, swapTries)
	if err != nil || !answer.Applied(d.Change) {
		return false, err
	}
	if d.Step == protocol.StepDoubt {
		swept.Doubted++
		c.emit(ctx, event.InDoubt, d.Change.To, nil)
		return true, nil
	}
	swept.Requeued++
	c.emit(ctx, event.Swept, d.Change.To, nil)
	return true, nil
}

// sweepHealed completes a record with the evidence.
func sweepHealed(ctx context.Context, c *Core, r store.Record, outcome []byte, keep time.Duration, swept *Swept) (freed bool, err error) {
	healed, _, err := c.heal(ctx, r, outcome, keep)
	switch {
	case errors.Is(err, callerr.ErrBusy):
		return false, nil
	case healed:
		swept.Healed++
	}
	return err == nil, err
}

// SweeperOptions set how often a [Sweeper] runs.
type SweeperOptions struct {
	Every time.Duration
	Batch int
}

// Sweeper settles the records of dead leaders and purges records past their
// retention, periodically.
type Sweeper struct {
	c       *Core
	options SweeperOptions
}

// NewSweeper returns a sweeper for the operations that the engine was given.
func NewSweeper(e Runner, o SweeperOptions) (*Sweeper, error) {
	c := e.core()
	if o.Every < 0 {
		return nil, callerr.Invalid("Every", "is negative: "+o.Every.String())
	}
	if o.Batch < 0 {
		return nil, callerr.Invalid("Batch", "is negative")
	}
	o.Every = cmp.Or(o.Every, c.options.Lease/3)
	o.Batch = cmp.Or(o.Batch, 500)
	return &Sweeper{c: c, options: o}, nil
}

// Run runs passes until ctx ends, and then returns nil. Errors go to the Observer
// as event.StoreError, and the next pass tries again.
func (s *Sweeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			s.c.emit(ctx, event.StoreError, store.Record{}, err)
		}
		_ = clock.Sleep(ctx, jitter(s.options.Every)) // the only error is ctx's
	}
	return nil
}

// Pass settles and purges once: it purges everything that is due, a batch at a
// time. If that takes longer than Every, it sweeps in between. It also reads the
// store's capabilities again, and emits event.NotDurable if the records survive less
// than at the last check, because a setting was changed or an unlogged partition
// was added.
func (s *Sweeper) Pass(ctx context.Context) error {
	unread := watchSurvives(ctx, s.c)
	_, swept := Sweep(ctx, s.c, s.options.Batch)
	for at := clock.Now(); ; {
		gone, err := Purge(ctx, s.c, s.options.Batch)
		if err != nil || gone < s.options.Batch {
			return errors.Join(unread, swept, err)
		}
		if clock.Since(at) >= s.options.Every {
			_, swept = Sweep(ctx, s.c, s.options.Batch)
			at = clock.Now()
		}
	}
}

// checkSurvives rejects a store that survives less than the options require.
func checkSurvives(required store.Failure, caps *store.Capabilities) error {
	switch {
	case caps.Survives < store.NoFailure || caps.Survives > store.Failover:
		return callerr.Invalid("store", "does not set Capabilities.Survives")
	case caps.Survives < required:
		return callerr.Invalid("Survive", fmt.Sprintf(
			"is %v, but the records of this store survive %v at most: %s. Change the setting, or accept the loss with Options.Survive: store.%[2]v",
			required, caps.Survives, caps.SurvivesBecause))
	default:
		return nil
	}
}

// watchSurvives emits the alarm if the records survive less than at the last check.
// It changes nothing else: to stop serving requests would do more harm than the
// risk that a crash of the server loses records.
func watchSurvives(ctx context.Context, c *Core) error {
	caps, err := c.store.Capabilities(ctx)
	if err != nil {
		return callerr.Seal(fmt.Errorf("%w: read the store's capabilities: %w", callerr.ErrUnavailable, err))
	}
	if before := c.survives.Swap(uint32(caps.Survives)); uint32(caps.Survives) < before {
		c.reportLoss(ctx, &caps)
	}
	return nil
}

// reportLoss emits the alarm for a store that may lose records. The operator should
// know it even if the program has accepted it by name.
func (c *Core) reportLoss(ctx context.Context, caps *store.Capabilities) {
	c.observe(ctx, event.Event{Kind: event.NotDurable, Err: fmt.Errorf(
		"the records of this store survive %v at most: %s; an operation whose record is lost may run again", caps.Survives, caps.SurvivesBecause)})
}
