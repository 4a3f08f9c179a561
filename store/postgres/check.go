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
func accept(ctx context.Context, changes []store.Change, answers []store.SwapResult) ([]item, error) {
	err := ctx.Err()
	if err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(changes))
	for i := range changes {
		if answers[i].Err = check(&changes[i]); answers[i].Err == nil {
			items = append(items, item{Change: &changes[i], answer: &answers[i]})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.To.ID[:], b.To.ID[:]) })
	return items, nil
}

// check finds what keeps a change from being made, whatever stands.
func check(c *store.Change) error {
	if err := c.Check(maxOutcome); err != nil {
		return fmt.Errorf("swap %w", err)
	}
	return nil
}
