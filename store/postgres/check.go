package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/semelgo/semel/store"
)

// checkAll sets the results of invalid changes, and returns the others sorted by
// ID, so that all callers take locks in the same order. It fails if the batch as a
// whole is invalid.
func checkAll(ctx context.Context, changes []store.Change, answers []store.SwapResult) ([]swapItem, error) {
	err := ctx.Err()
	if err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err != nil {
		return nil, err
	}
	items := make([]swapItem, 0, len(changes))
	for i := range changes {
		if answers[i].Err = check(&changes[i]); answers[i].Err == nil {
			items = append(items, swapItem{Change: &changes[i], answer: &answers[i]})
		}
	}
	slices.SortFunc(items, func(a, b swapItem) int { return bytes.Compare(a.To.ID[:], b.To.ID[:]) })
	return items, nil
}

// check validates one change.
func check(c *store.Change) error {
	if err := c.Check(maxOutcome); err != nil {
		return fmt.Errorf("swap %w", err)
	}
	return nil
}
