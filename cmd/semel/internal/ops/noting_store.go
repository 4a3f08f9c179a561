package ops

import (
	"context"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// pendingNote is the note that an engine writes with an operator's change.
type pendingNote struct {
	store.Note // without tokens

	to      []store.State // changes of the record to these states get the note; intermediate changes do not
	request store.ID      // another record that was written for the change; it gets the note too
	made    bool          // a change with the note has been applied
}

// notingStore is a store that writes a note in the same transaction as the
// engine's change.
type notingStore struct {
	store.Store

	auditor store.Auditor // nil: the store keeps no notes
	noted   *pendingNote
}

// Swap writes the note with a single change, as operators' changes are.
func (n *notingStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if len(changes) != 1 || !n.noted.has(&changes[0].To) {
		return n.Store.Swap(ctx, changes)
	}
	answers := make([]store.SwapResult, 1)
	var err error
	if n.auditor != nil {
		answers[0], err = n.auditor.SwapNoted(ctx, changes[0], n.noted.Note)
	} else {
		answers, err = n.Store.Swap(ctx, changes)
	}
	if err != nil {
		return nil, err
	}
	n.noted.made = n.noted.made || answers[0].Applied(changes[0])
	return answers, nil
}

// has reports whether the change to r gets the note.
func (n *pendingNote) has(r *store.Record) bool {
	if r.ID != n.ID {
		n.request = r.ID
		return true
	}
	return slices.Contains(n.to, r.State)
}

// notingEngine returns a function that makes engines over s whose changes get a
// note.
func notingEngine(s store.Store) func(semel.Options, *pendingNote) (semel.Runner, error) {
	return func(o semel.Options, n *pendingNote) (semel.Runner, error) {
		auditor, _ := s.(store.Auditor)
		return engineOver(&notingStore{s, auditor, n})(o)
	}
}
