package semel

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// checkSurvives rejects a store that survives less than the options ask for.
func checkSurvives(required store.Failure, caps *store.Capabilities) error {
	switch {
	case caps.Survives < store.NoFailure || caps.Survives > store.PowerLoss:
		return invalid("store", "does not say which failure its records survive: Capabilities.Survives is not set")
	case caps.Survives < required:
		return invalid("Survive", fmt.Sprintf(
			"is %v, but the records of this store survive %v at most: %s. Change the setting, or accept the loss with Options.Survive: store.%[2]v",
			required, caps.Survives, caps.Because))
	default:
		return nil
	}
}

// reportAcceptedLoss emits the alarm for a store that may lose records. The program
// accepts that by name; the operator should know it too.
func (c *Core) reportAcceptedLoss(ctx context.Context, caps *store.Capabilities) {
	if caps.Survives >= store.PowerLoss {
		return
	}
	c.observe(ctx, Event{Kind: EventNotDurable, Err: fmt.Errorf(
		"the records of this store survive %v at most: %s; an operation whose record is lost may run again", caps.Survives, caps.Because)})
}
