package semel

import (
	"context"
	"iter"

	"github.com/semelgo/semel/store"
)

// outcomeDeadLetter is the first byte of the outcome of a dead letter. A stored
// failure follows, in the state Failed as well as InDoubt. No function can store
// this byte by itself, so a caller's failed key never looks like a dead letter.
const outcomeDeadLetter = 'd'

// IsDeadLetter reports whether r is a dead letter: a task or a message that is not
// tried again, because its attempts are used up or because its consumer rejected
// the message. It is Failed, or InDoubt under a policy that allows another attempt.
// The record itself says so, in the first byte of its outcome, "d"; the operation's
// definition is not needed. Dead letters are kept for [Retry].DeadLetterRetention,
// and [Core.Redrive] accepts them.
func IsDeadLetter(r store.Record) bool {
	return (r.State == store.Failed || r.State == store.InDoubt) && len(r.Outcome) > 0 && r.Outcome[0] == outcomeDeadLetter
}

// encodeDeadLetter stores err as the reason why a record is a dead letter, no longer
// than limit.
func encodeDeadLetter(err error, limit int) []byte {
	outcome := encodeFailure(err, limit)
	outcome[0] = outcomeDeadLetter
	return outcome
}

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
			if q.After = r.ID; !IsDeadLetter(r) {
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
