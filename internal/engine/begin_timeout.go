package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// errTooLate ends the wait for a transaction that did not begin in time.
var errTooLate = errors.New("semel: the transaction did not begin in time")

// beginTimeout limits how long the store may take to begin a transaction, including
// the wait for a connection, to RecordTimeout. It does not limit the transaction
// itself.
type beginTimeout struct {
	c      *Core
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: the store never waits
	begun  bool
}

// beginTimeout returns the context for the store.
func (c *Core) beginTimeout(ctx context.Context) (context.Context, *beginTimeout) {
	b := &beginTimeout{c: c}
	if c.inProcess != nil {
		return ctx, b
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	b.timer = time.AfterFunc(c.options.RecordTimeout, func() { b.cancel(errTooLate) })
	return ctx, b
}

// begin lifts the limit. If the time is over, it ends the context and returns false.
func (b *beginTimeout) begin() bool {
	b.begun = b.timer == nil || b.timer.Stop()
	if !b.begun {
		b.cancel(errTooLate) // the timer's goroutine may not have run yet
	}
	return b.begun
}

func (b *beginTimeout) end() {
	if b.timer != nil {
		b.timer.Stop()
		b.cancel(nil)
	}
}

// explain adds the reason to the store's error if the transaction did not begin in
// time, and emits an event.
func (b *beginTimeout) explain(ctx context.Context, id store.ID, err error) error {
	if err == nil || b.begun || !errors.Is(context.Cause(ctx), errTooLate) {
		return err
	}
	err = fmt.Errorf("%w, within the RecordTimeout of %v: %w", errTooLate, b.c.options.RecordTimeout, err)
	b.c.emit(ctx, event.StoreError, store.Record{ID: id}, err)
	return err
}
