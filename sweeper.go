package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
)

// SweeperOptions say how often a [Sweeper] looks. The zero value is good.
type SweeperOptions struct {
	// Every is how long it rests between two passes. Zero: a third of the
	// engine's lease. Under Hold and Heal a sweep leaves a leader in doubt whose
	// lease is over although it lives, starved of processor time for instance:
	// the shorter the rest, the more of them, where the lease is short.
	Every time.Duration
	// Batch is the most records of each operation that one pass frees, and the
	// most it purges at a time. Zero: 500.
	Batch int
}

// Sweeper frees what dead leaders left and purges what is past its retention,
// again and again. Any number of processes may have one; none is needed for
// anything to be right.
type Sweeper struct {
	c       *Core
	options SweeperOptions
}

// NewSweeper returns a sweeper of the operations that the engine was given.
// Wrong options are a *FieldError.
func NewSweeper(e Runner, o SweeperOptions) (*Sweeper, error) {
	c := e.core()
	if o.Every < 0 {
		return nil, invalid("Every", "is negative: "+o.Every.String())
	}
	if o.Batch < 0 {
		return nil, invalid("Batch", "is negative")
	}
	setDefault(&o.Every, c.options.Lease/3)
	setDefault(&o.Batch, 500)
	return &Sweeper{c: c, options: o}, nil
}

// Run makes one pass after the other until ctx ends, and then returns nil. What
// goes wrong is told to the Observer as EventStoreError, and tried again with the
// next pass.
func (s *Sweeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			s.c.emit(ctx, EventStoreError, store.Record{}, err)
		}
		_ = pause(ctx, jitter(s.options.Every)) // its error is ctx's
	}
	return nil
}

// Pass frees and purges once: all that there is to purge, a batch at a time. When
// that takes longer than Every, it frees again in between. It also reads the store's
// capabilities again, and emits EventNotDurable if the records survive less than when
// they were last read: a setting was changed, or an unlogged partition was added.
func (s *Sweeper) Pass(ctx context.Context) error {
	unread := s.c.watchSurvives(ctx)
	_, swept := s.c.Sweep(ctx, s.options.Batch)
	for at := now(); ; {
		gone, err := s.c.Purge(ctx, s.options.Batch)
		if err != nil || gone < s.options.Batch {
			return errors.Join(unread, swept, err)
		}
		if since(at) >= s.options.Every {
			_, swept = s.c.Sweep(ctx, s.options.Batch)
			at = now()
		}
	}
}
