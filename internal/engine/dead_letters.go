package engine

import (
	"context"
	"iter"

	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

// DeadLetters returns the dead letters of the operation with that name, or of all
// operations when the name is empty: first those that are InDoubt, then those that
// have Failed, in the order of their IDs.
func DeadLetters(ctx context.Context, c *Core, operation string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, state := range []store.State{store.InDoubt, store.Failed} {
			if !deadLettersIn(ctx, c, store.Query{State: state, Operation: operation, Limit: store.MaxLimit}, yield) {
				return
			}
		}
	}
}

// deadLettersIn yields the dead letters that q finds, and reports whether the loop
// goes on.
func deadLettersIn(ctx context.Context, c *Core, q store.Query, yield func(store.Record, error) bool) bool {
	for {
		page, err := List(ctx, c, q)
		if err != nil {
			yield(store.Record{}, err)
			return false
		}
		for _, r := range page {
			if q.After = r.ID; !codec.IsDeadLetter(r) {
				continue
			}
			if !yield(publicRecord(r, nil)) {
				return false
			}
		}
		if len(page) < q.PageSize() {
			return true
		}
	}
}
