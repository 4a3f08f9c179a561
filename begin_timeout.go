package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// errTooLate ends the wait for a transaction that did not begin in time.
var errTooLate = errors.New("semel: the transaction did not begin in time")

// beginning bounds how long the store may take to begin a transaction, with its wait for a
// connection: RecordTimeout. A transaction that has begun is not bounded.
type beginTimeout struct {
	c      *Core
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: the store never waits
	begun  bool
}

// beginning returns ctx for the store.
func (c *Core) beginTimeout(ctx context.Context) (context.Context, *beginTimeout) {
	b := &beginTimeout{c: c}
	if c.inProcess != nil {
		return ctx, b
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	b.timer = time.AfterFunc(c.options.RecordTimeout, func() { b.cancel(errTooLate) })
	return ctx, b
}

// begins lifts the bound. It reports false if the bound has ended the context already.
func (b *beginTimeout) begin() bool {
	b.begun = b.timer == nil || b.timer.Stop()
	return b.begun
}

func (b *beginTimeout) end() {
	if b.timer != nil {
		b.timer.Stop()
		b.cancel(nil)
	}
}

// because returns the store's error with the reason why the transaction did not begin, and
// reports it.
func (b *beginTimeout) explain(ctx context.Context, id store.ID, err error) error {
	if err == nil || b.begun || !errors.Is(context.Cause(ctx), errTooLate) {
		return err
	}
	err = fmt.Errorf("%w, within the RecordTimeout of %v: %w", errTooLate, b.c.options.RecordTimeout, err)
	b.c.emit(ctx, EventStoreError, store.Record{ID: id}, err)
	return err
}
