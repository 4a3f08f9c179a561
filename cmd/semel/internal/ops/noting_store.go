package ops

import (
	"context"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// pendingNote is what an engine has changed on a person's word.
type pendingNote struct {
	store.Note // without the tokens

	to    []store.State // changes of the record to these are noted, not what leads to them
	asked store.ID      // another record that was written for it; it is noted too
	made  bool          // a change that was to be noted is in force
}

// notingStore is a store that keeps a note with what the engine above it changes, in
// the same transaction.
type notingStore[Tx any] struct {
	store.TxStore[Tx]

	auditor store.Auditor // nil: it keeps no notes
	noted   *pendingNote
}

// Swap notes a change that stands alone, as those of a person do.
func (n *notingStore[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if len(changes) != 1 || !n.noted.has(&changes[0].To) {
		return n.TxStore.Swap(ctx, changes)
	}
	answers := make([]store.SwapResult, 1)
	var err error
	if n.auditor != nil {
		answers[0], err = n.auditor.SwapNoted(ctx, changes[0], n.noted.Note)
	} else {
		answers, err = n.TxStore.Swap(ctx, changes)
	}
	if err != nil {
		return nil, err
	}
	n.noted.made = n.noted.made || answers[0].Applied(changes[0])
	return answers, nil
}

// has tells whether that r stands is to be noted.
func (n *pendingNote) has(r *store.Record) bool {
	if r.ID != n.ID {
		n.asked = r.ID
		return true
	}
	return slices.Contains(n.to, r.State)
}

// notingEngine returns how to make an engine over s that notes what it changes.
func notingEngine[Tx any](s store.TxStore[Tx]) func(semel.Options, *pendingNote) (*semel.Core, error) {
	return func(o semel.Options, n *pendingNote) (*semel.Core, error) {
		auditor, _ := s.(store.Auditor)
		return engineOver(store.TxStore[Tx](&notingStore[Tx]{s, auditor, n}))(o)
	}
}
