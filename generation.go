package semel

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// A key without a time can be stored by generations, which are spans of time. Its
// outcome is written twice in one transaction: under the ID of the current
// generation and, as its successor, under the ID of the next. Two concurrent callers
// whose clocks are in successive generations share one of these IDs, so only one of
// them can commit. It would not be enough to read the previous generation and to
// write the current one: a caller that is late in the previous generation may not
// have committed yet.

// minGeneration is the shortest generation. Calls of one generation must have ended
// when the generation after the next begins.
const minGeneration = time.Minute

// generations validates the Generation of an operation.
func (o *operation) generations() error {
	switch {
	case o.generation == 0:
		return nil
	case o.generation < minGeneration:
		return callerr.Invalid("Generation", "must be a minute or longer: callers' clocks must differ by less")
	case o.keyTime != nil:
		return callerr.Invalid("Generation", "is for keys without a time, and KeyTime reads one")
	case o.retention != 0:
		return callerr.Invalid("Generation", "sets how long records are kept; do not set Retention")
	case !o.inline():
		return callerr.Invalid("Generation", "is for operations that DoTx runs as one transaction")
	case o.onError == Keep || o.retry != nil:
		return callerr.Invalid("Generation", "stores no failures; do not set OnError or Retry")
	}
	o.retention = 2 * o.generation
	return nil
}

// notByGeneration refuses operations with a Generation.
func (c *Call) notByGeneration() error {
	if c.op.generation > 0 {
		return callerr.Invalid("Generation", "is for DoTx, which writes two records")
	}
	return nil
}

// successor is the record of a key in the next generation.
type successor struct {
	id         store.ID
	current    store.Record
	generation int64 // number of the generation before it, which the call's own ID is of
}

// generationAt returns the number of the generation of a time, and the key's IDs in
// it and in the next.
func (o *operation) generationAt(at time.Time, scope, key string) (n int64, ids [2]store.ID) {
	length := o.generation.Milliseconds()
	if n = at.UnixMilli() / length; at.UnixMilli() < 0 {
		n = 0
	}
	for i := range ids {
		start := time.UnixMilli((n + int64(i)) * length)
		ids[i] = store.NewTimedID(o.name, scope, key, start)
	}
	return n, ids
}

// read reads the current record of the call. For an operation with a Generation it
// reads both, and returns the final one if there is one, else the record of this
// generation.
func (q *claimer) read(ctx context.Context) (store.Record, error) {
	op := q.call.op
	if op.generation == 0 {
		return q.c.reader.get(ctx, q.call.id)
	}
	n, ids := op.generationAt(q.c.options.Clock(), q.call.scope.text, q.call.key)
	both, err := q.c.reader.getAll(ctx, ids[:])
	if err != nil {
		return store.Record{}, err
	}
	q.call.id, q.successor = ids[0], &successor{ids[1], both[1], n}
	if both[1].State.Final() {
		return both[1], nil
	}
	return both[0], nil
}

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

// noPartitionError returns the error for a key whose time has no partition. A key
// that is too old, or too far in the future, has expired. Otherwise the partition
// was not created in time or was dropped too early: nothing was run, and a retry
// may succeed. The time of a generation is not the key's.
func (c *Core) noPartitionError(call *Call, err error) error {
	if call.op.generation == 0 && c.keyExpired(call) {
		return fmt.Errorf("%w: %w", callerr.ErrKeyExpired, err)
	}
	return fmt.Errorf("%w: %w", callerr.ErrUnavailable, err)
}
