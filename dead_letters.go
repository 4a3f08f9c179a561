package semel

import (
	"context"
	"iter"

	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

// DeadLetters returns the dead letters of the operation with that name, or of all
// operations when the name is empty: first those that are InDoubt, then those that
// have Failed, in the order of their IDs. It reads them in pages, so records may be
// missed when other programs change them meanwhile, and they may be redriven while
// the loop runs. An error ends the sequence.
func (c *Core) DeadLetters(ctx context.Context, operation string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, state := range []store.State{store.InDoubt, store.Failed} {
			if !c.deadLettersIn(ctx, store.Query{State: state, Operation: operation, Limit: store.MaxLimit}, yield) {
				return
			}
		}
	}
}

// deadLettersIn yields the dead letters that q finds, and reports whether the loop
// goes on.
func (c *Core) deadLettersIn(ctx context.Context, q store.Query, yield func(store.Record, error) bool) bool {
	for {
		page, err := c.List(ctx, q)
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
