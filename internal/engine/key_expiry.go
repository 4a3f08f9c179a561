package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// keyExpired reports whether the time in the key is older than the retention, or in
// the future.
func (c *Core) keyExpired(call *Call) bool {
	made := call.keyTime()
	if made.IsZero() {
		return false
	}
	age := c.options.Clock().Sub(made)
	return age > c.options.times(call.op).retention || age < -call.op.skew
}

// noPartitionError returns the error for a key whose time has no partition. A key
// that is too old, or too far in the future, has expired. Otherwise the partition
// was not created in time or was dropped too early: nothing was run, and a retry
// may succeed. The time of a generation is not the key's.
func (c *Core) noPartitionError(call *Call, err error) error {
	if call.op.generation == 0 && c.keyExpired(call) {
		return fmt.Errorf("%w: %w", callerr.ErrKeyExpired, err)
	}
	return fmt.Errorf("%w: %w", callerr.ErrUnavailable, err)
}

// checkKeyAge returns ErrKeyExpired if there is no record and the key is too old to
// be new.
func (c *Core) checkKeyAge(ctx context.Context, call *Call) error {
	if err := call.notByGeneration(); err != nil || !c.keyExpired(call) {
		return err
	}
	var current store.Record
	return c.newClaimer(call, protocol.Unset).readFirst(ctx, &current)
}
