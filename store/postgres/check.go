package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/semelgo/semel/store"
)

// accept answers the changes that cannot be kept, and returns the others in the
// order of their IDs, in which everybody takes the locks. It fails when the batch
// as a whole is wrong.
func accept(ctx context.Context, changes []store.Change, answers []store.Standing) ([]item, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("swap: %w", err)
	}
	if len(changes) > maxBatch {
		return nil, fmt.Errorf("swap: %d changes, at most %d", len(changes), maxBatch)
	}
	items := make([]item, len(changes))
	for i := range changes {
		items[i] = item{Change: &changes[i], answer: &answers[i]}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.To.ID[:], b.To.ID[:]) })
	for i := 1; i < len(items); i++ {
		if items[i].To.ID == items[i-1].To.ID {
			return nil, fmt.Errorf("swap: two changes name record %s", items[i].To.ID)
		}
	}
	return slices.DeleteFunc(items, func(it item) bool {
		it.answer.Err = check(it.Change)
		return it.answer.Err != nil
	}), nil
}

// check finds what keeps a change from being made, whatever stands.
func check(c *store.Change) error {
	to := &c.To
	if to.State < store.Pending || to.State > store.Failed {
		return fmt.Errorf("swap record %s: state %v cannot stand", to.ID, to.State)
	}
	creates := kindOf(c) == create // what names a record is written then only
	for _, field := range [...]struct {
		name    string
		n, most int
		written bool
	}{
		{"operation", len(to.Operation), store.MaxOperation, creates},
		{"scope", len(to.Scope), store.MaxScope, creates},
		{"key", len(to.Key), store.MaxKey, creates},
		{"input", len(to.Input), maxOutcome, true},
		{"outcome", len(to.Outcome), maxOutcome, true},
	} {
		if field.written && field.n > field.most {
			return fmt.Errorf("swap record %s: %s has %d bytes, at most %d", to.ID, field.name, field.n, field.most)
		}
	}
	return nil
}
