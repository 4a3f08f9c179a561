package engine

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

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
