package semel

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Keys without a time in them are remembered by generations of time. Whoever runs
// such a key writes its outcome twice in one transaction: under the ID of this
// generation and, as its twin, under that of the next. Two who ask at the same
// time, and whose clocks say generations that follow each other, share the ID in
// between: it has room for one of them. To probe the generation before and to
// write this one only would not do: who is late in the former is not seen yet.

// minGeneration is the shortest generation: what is under way in one must have
// ended when the one after the next begins.
const minGeneration = time.Minute

// generations returns what is wrong with the Generation of an operation.
func (o *operation) generations() error {
	switch {
	case o.generation == 0:
		return nil
	case o.generation < minGeneration:
		return invalid("Generation", "must be a minute or longer: the clocks of those who ask must differ by less than it")
	case o.keyTime != nil:
		return invalid("Generation", "is for keys without a time, and KeyTime reads one")
	case o.retention != 0:
		return invalid("Generation", "says how long records are kept; leave Retention out")
	case !o.inline():
		return invalid("Generation", "is for operations that DoTx runs as one transaction")
	case o.onError == Keep || o.retry != nil:
		return invalid("Generation", "keeps no failures: leave OnError and Retry out")
	}
	o.retention = 2 * o.generation
	return nil
}

// notByGeneration refuses what only operations can do that have one record.
func (c *Call) notByGeneration() error {
	if c.op.generation > 0 {
		return invalid("Generation", "is for DoTx: nothing else writes both of its records")
	}
	return nil
}

// twin is the place of a key in the next generation.
type twin struct {
	id         store.ID
	current    store.Record
	generation int64 // before it, which the call's own ID is of
}

// generationAt returns the number of the generation that at is in, and the IDs of
// a key in it and in the next.
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

// read reads what stands for the call: of an operation by generations under
// either ID, an outcome if there is one, and otherwise what stands in this
// generation.
func (q *claimer) read(ctx context.Context) (store.Record, error) {
	op := q.call.op
	if op.generation == 0 {
		return q.c.get(ctx, q.call.id)
	}
	n, ids := op.generationAt(q.c.options.Clock(), q.call.scope.text, q.call.key)
	both, err := q.c.getAll(ctx, ids[:])
	if err != nil {
		return store.Record{}, err
	}
	q.call.id, q.twin = ids[0], &twin{ids[1], both[1], n}
	if both[1].State.Final() {
		return both[1], nil
	}
	return both[0], nil
}

// mayStartTwin says, as next does for the record itself, what keeps the outcome
// from being written in the next generation too.
func (i *inline) mayWriteTwin() answer {
	if i.call.op.generation == 0 {
		return answerApply
	}
	return next(i.twin.current, i.twinEvent(store.Change{})).answer
}

// twinEvent asks for the twin of a change.
func (i *inline) twinEvent(of store.Change) event {
	e := i.event(store.Succeeded, of.To.Outcome)
	e.identity.ID = i.twin.id
	return e
}

// writeTwin writes the outcome in the next generation, before the last statement
// of the transaction writes it in this one. Unless that is in force by this very
// write, nothing is to be committed: somebody else was first, in either of them.
func (i *inline) writeTwin(ctx context.Context, tx any) error {
	if i.call.op.generation == 0 {
		return nil
	}
	if n, _ := i.call.op.generationAt(i.c.options.Clock(), i.call.scope.text, i.call.key); n != i.twin.generation {
		return fmt.Errorf("the generation is over: %w", store.ErrConflict)
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	change := next(i.twin.current, i.twinEvent(i.change)).change
	answers, err := i.c.swapTx(ctx, tx, []store.Change{change})
	switch {
	case err != nil:
		return fmt.Errorf("write the record of the next generation: %w", err)
	case answers[0].Err != nil:
		return fmt.Errorf("write the record of the next generation: %w", answers[0].Err)
	case answers[0].Busy:
		i.ran, i.busy, i.answer = false, true, answerWait
		return errNotRun
	case !answers[0].Applied(change):
		return fmt.Errorf("write the record of the next generation: %w", store.ErrSuperseded)
	}
	return nil
}

// keepTwin writes the twin of an outcome that was not committed together with it.
func (i *inline) keepTwin(ctx context.Context) error {
	if i.call.op.generation == 0 {
		return nil
	}
	_, err := i.prove(ctx, next(i.twin.current, i.twinEvent(i.change)).change)
	return err
}

// withoutPlace tells of a key for whose time the store has no partition. A key that
// is too old, or too far ahead, is expired. Otherwise the partition is one that was
// not made in time, or was dropped too early: nothing was run, and the key may come
// again. The time of a generation is not the key's.
func (c *Core) noPartitionError(call *Call, err error) error {
	if call.op.generation == 0 && c.keyExpired(call) {
		return fmt.Errorf("%w: %w", ErrKeyExpired, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// getAll reads what stands under several IDs, with as much patience as get.
func (c *Core) getAll(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	var last error
	for range askTries {
		answers, err := c.store.Get(ctx, ids)
		if err == nil {
			records := make([]store.Record, len(answers))
			for i := range answers {
				records[i] = recordOf(answers[i])
			}
			return records, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, last
}
