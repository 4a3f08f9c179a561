package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// checkSurvives rejects a store that survives less than the options require.
func checkSurvives(required store.Failure, caps *store.Capabilities) error {
	switch {
	case caps.Survives < store.NoFailure || caps.Survives > store.Failover:
		return callerr.Invalid("store", "does not set Capabilities.Survives")
	case caps.Survives < required:
		return callerr.Invalid("Survive", fmt.Sprintf(
			"is %v, but the records of this store survive %v at most: %s. Change the setting, or accept the loss with Options.Survive: store.%[2]v",
			required, caps.Survives, caps.SurvivesBecause))
	default:
		return nil
	}
}

// watchSurvives emits the alarm if the records survive less than at the last check.
// It changes nothing else: to stop serving requests would do more harm than the
// risk that a crash of the server loses records.
func watchSurvives(ctx context.Context, c *Core) error {
	caps, err := c.store.Capabilities(ctx)
	if err != nil {
		return callerr.Seal(fmt.Errorf("%w: read the store's capabilities: %w", callerr.ErrUnavailable, err))
	}
	if before := c.survives.Swap(uint32(caps.Survives)); uint32(caps.Survives) < before {
		c.reportLoss(ctx, &caps)
	}
	return nil
}

// reportLoss emits the alarm for a store that may lose records. The operator should
// know it even if the program has accepted it by name.
func (c *Core) reportLoss(ctx context.Context, caps *store.Capabilities) {
	c.observe(ctx, event.Event{Kind: event.NotDurable, Err: fmt.Errorf(
		"the records of this store survive %v at most: %s; an operation whose record is lost may run again", caps.Survives, caps.SurvivesBecause)})
}
