package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// FencedTx runs fn in a transaction of e that commits only if a is still the current
// attempt of its record. The attempt goes on afterwards, with a renewed lease.
func FencedTx[Tx any](ctx context.Context, e *Engine[Tx], a *Attempt, fn func(ctx context.Context, tx Tx) error) error {
	if a.c != e.Core {
		return callerr.Invalid("Attempt", "does not belong to this engine")
	}
	if err := e.notWithinTx(ctx, true); err != nil {
		return err
	}
	return callerr.Seal(fencedTx(ctx, a, func(ctx context.Context, tx any) error { return fn(ctx, tx.(Tx)) }))
}

// fencedTx makes a renewal of the lease the last statement of the transaction. A store
// refuses to commit if that is not applied.
func fencedTx(ctx context.Context, a *Attempt, fn func(ctx context.Context, tx any) error) error {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	sent := clock.Now()
	left := a.renewer.maxRunLeft()
	if left <= 0 || a.ended.Load() {
		return callerr.ErrLeaseLost
	}
	beat := protocol.Event{Step: protocol.StepHeartbeat, Token: a.token, Lease: min(a.times.Lease, left)}
	change := protocol.Next(a.Record(), beat).Change
	var fnErr error
	_, err := a.c.atomic(ctx, a.call.id, false, func(ctx context.Context, tx any, _ store.SwapResult) (*store.Change, error) {
		if fnErr = fn(ctx, tx); fnErr != nil {
			return nil, callerr.WithoutInnerErrors(fnErr)
		}
		return &change, nil
	})
	switch {
	case err == nil:
		a.renewer.confirm(sent)
		return nil
	case errors.Is(err, store.ErrSuperseded):
		a.renewer.lose("superseded: another attempt has changed the record")
		return fmt.Errorf("%w: %w", callerr.ErrLeaseLost, err)
	default:
		return fmt.Errorf("%w: %w", callerr.ErrUnavailable, err)
	}
}

// Records reads the current records of calls, in their order. A call without a record has
// one whose State is Absent.
func Records(ctx context.Context, c *Core, calls []Call) ([]store.Record, error) {
	ids := make([]store.ID, len(calls))
	for i := range calls {
		ids[i] = store.NewID(calls[i].Operation(), calls[i].Scope().Bytes(), calls[i].Key())
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var records []store.Record
	for part := range slices.Chunk(ids, c.caps.MaxBatch) {
		found, err := c.reader.getAll(ctx, clock.Now(), part...)
		if err != nil {
			return nil, callerr.Seal(err)
		}
		records = append(records, found...)
	}
	return records, nil
}

// OutboxOf returns the outbox in the database of e's records, or nil.
func OutboxOf[Tx any](e *Engine[Tx]) store.Outbox[Tx] {
	s, ok := e.store.(store.OutboxStore[Tx])
	if !ok {
		return nil
	}
	return s.Outbox()
}

// OutboxReaderOf returns the outbox in the database of c's records, or nil.
func OutboxReaderOf(c *Core) store.OutboxReader { return c.outbox }

// Report sends an event about a record to the Observer of c.
func Report(ctx context.Context, c *Core, kind event.Kind, r store.Record, err error) {
	c.emit(ctx, kind, r, err)
}
