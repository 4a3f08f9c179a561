package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// SweeperOptions set how often a [Sweeper] runs. The zero value has good defaults.
type SweeperOptions struct {
	// Every is the pause between two passes. Zero: a third of the engine's lease.
	// Under Hold and Heal, a sweep leaves a live leader in doubt if its lease has
	// expired, because it got no processor time for instance. With short leases,
	// shorter pauses do so more often.
	Every time.Duration
	// Batch is the largest number of records of each operation that one pass
	// settles, and that it purges at a time. Zero: 500.
	Batch int
}

// Sweeper settles the records of dead leaders and purges records past their
// retention, periodically. Any number of processes may run one. Correctness does
// not depend on it.
type Sweeper struct {
	c       *Core
	options SweeperOptions
}

// NewSweeper returns a sweeper for the operations that the engine was given. Wrong
// options are a *FieldError.
func NewSweeper(e Runner, o SweeperOptions) (*Sweeper, error) {
	c := e.core()
	if o.Every < 0 {
		return nil, callerr.Invalid("Every", "is negative: "+o.Every.String())
	}
	if o.Batch < 0 {
		return nil, callerr.Invalid("Batch", "is negative")
	}
	setDefault(&o.Every, c.options.Lease/3)
	setDefault(&o.Batch, 500)
	return &Sweeper{c: c, options: o}, nil
}

// Run runs passes until ctx ends, and then returns nil. Errors go to the Observer
// as event.StoreError, and the next pass tries again.
func (s *Sweeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			s.c.emit(ctx, event.StoreError, store.Record{}, err)
		}
		_ = pause(ctx, jitter(s.options.Every)) // the only error is ctx's
	}
	return nil
}

// Pass settles and purges once: it purges everything that is due, a batch at a
// time. If that takes longer than Every, it sweeps in between. It also reads the
// store's capabilities again, and emits event.NotDurable if the records survive less
// than at the last check, because a setting was changed or an unlogged partition
// was added.
func (s *Sweeper) Pass(ctx context.Context) error {
	unread := s.c.watchSurvives(ctx)
	_, swept := s.c.Sweep(ctx, s.options.Batch)
	for at := clock.Now(); ; {
		gone, err := s.c.Purge(ctx, s.options.Batch)
		if err != nil || gone < s.options.Batch {
			return errors.Join(unread, swept, err)
		}
		if clock.Since(at) >= s.options.Every {
			_, swept = s.c.Sweep(ctx, s.options.Batch)
			at = clock.Now()
		}
	}
}
