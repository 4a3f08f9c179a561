package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// mayWriteSuccessor decides whether the outcome may be written in the next generation,
// as next does for the record itself.
func (i *inline) mayWriteSuccessor(ctx context.Context) protocol.Answer {
	if i.call.op.generation == 0 {
		return protocol.Apply
	}
	return protocol.Next(i.successor.current, i.successorEvent(ctx, nil)).Answer
}

// successorEvent returns the event that writes the outcome in the next generation.
func (i *inline) successorEvent(ctx context.Context, outcome []byte) (e protocol.Event) {
	i.attempt.endEvent(ctx, &e, outcome, nil)
	e.Identity.ID = i.successor.id
	return e
}

// writeSuccessor writes the outcome in the next generation, before the last statement of
// the transaction writes it in this one. If the write is not applied, another
// caller was first in one of the two generations, and the transaction is rolled
// back.
func (i *inline) writeSuccessor(ctx context.Context, tx any) error {
	if i.call.op.generation == 0 {
		return nil
	}
	if n, _ := i.call.op.generationAt(i.c.options.Clock(), i.call.scope.text, i.call.key); n != i.successor.generation {
		return fmt.Errorf("the generation is over: %w", store.ErrConflict)
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	change := protocol.Next(i.successor.current, i.successorEvent(ctx, i.change.To.Outcome)).Change
	answers, err := i.c.swapTx(ctx, tx, []store.Change{change})
	switch {
	case err != nil:
		return fmt.Errorf("write the record of the next generation: %w", err)
	case answers[0].Err != nil:
		return fmt.Errorf("write the record of the next generation: %w", answers[0].Err)
	case answers[0].Busy:
		i.ran, i.busy, i.answer = false, true, protocol.Wait
		return callerr.ErrNotRun
	case !answers[0].Applied(change):
		return fmt.Errorf("write the record of the next generation: %w", store.ErrSuperseded)
	}
	return nil
}

// keepSuccessor writes the successor of an outcome that was committed without it.
func (i *inline) keepSuccessor(ctx context.Context, outcome []byte) error {
	if i.call.op.generation == 0 {
		return nil
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	change := protocol.Next(i.successor.current, i.successorEvent(ctx, outcome)).Change
	_, err := i.c.writer.proveChange(ctx, &change)
	return err
}
