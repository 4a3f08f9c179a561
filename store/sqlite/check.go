package sqlite

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// checkBatch finds what is wrong with a batch as a whole.
func checkBatch(ctx context.Context, changes []store.Change) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	if len(changes) > maxBatch {
		return fmt.Errorf("swap: %d changes, at most %d", len(changes), maxBatch)
	}
	if len(changes) < 2 {
		return nil
	}
	seen := make(map[store.ID]struct{}, len(changes))
	for i := range changes {
		id := changes[i].To.ID
		if _, twice := seen[id]; twice {
			return fmt.Errorf("swap: change %d names record %s again", i, id)
		}
		seen[id] = struct{}{}
	}
	return nil
}

// refuse answers the changes that cannot stand, and counts the others.
func refuse(changes []store.Change) (answers []store.Standing, valid int) {
	answers = make([]store.Standing, len(changes))
	for i := range changes {
		if answers[i].Err = check(&changes[i]); answers[i].Err == nil {
			valid++
		}
	}
	return answers, valid
}

// check finds what is wrong with one change.
func check(c *store.Change) error {
	if c.To.State < store.Pending || c.To.State > store.Failed {
		return fmt.Errorf("swap record %s: state %v cannot stand", c.To.ID, c.To.State)
	}
	create := c.If == store.Token{} // what names a record is written then only
	for _, field := range [...]struct {
		name    string
		n, most int
		written bool
	}{
		{"operation", len(c.To.Operation), store.MaxOperation, create},
		{"scope", len(c.To.Scope), store.MaxScope, create},
		{"key", len(c.To.Key), store.MaxKey, create},
		{"input", len(c.To.Input), maxOutcome, true},
		{"outcome", len(c.To.Outcome), maxOutcome, true},
	} {
		if field.written && field.n > field.most {
			return fmt.Errorf("swap record %s: %s has %d bytes, at most %d", c.To.ID, field.name, field.n, field.most)
		}
	}
	return nil
}
