package sqlite

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// checkBatch validates a batch as a whole.
func checkBatch(ctx context.Context, changes []store.Change) error {
	err := ctx.Err()
	if err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	return nil
}

// refuse sets the results of invalid changes, and counts the valid ones.
func refuse(changes []store.Change) (answers []store.SwapResult, valid int) {
	answers = make([]store.SwapResult, len(changes))
	for i := range changes {
		if answers[i].Err = check(&changes[i]); answers[i].Err == nil {
			valid++
		}
	}
	return answers, valid
}

// check validates one change.
func check(c *store.Change) error {
	if err := c.Check(maxOutcome); err != nil {
		return fmt.Errorf("swap %w", err)
	}
	return nil
}
