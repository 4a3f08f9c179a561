package engine

import (
	"context"

	"github.com/semelgo/semel/store"
)

// successor is the record of a key in the next generation.
type successor struct {
	id         store.ID
	current    store.Record
	generation int64 // number of the generation before it, which the call's own ID is of
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
