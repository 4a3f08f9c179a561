package engine

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Settle records one entry of a journal, as the engine that wrote it would have:
// with the same token, within RecordTimeout.
func Settle(ctx context.Context, c *Core, e journal.Entry) (now store.Record, recorded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.writer.completeAlone(ctx, e.Record, pendingOf(e).event)
	if err != nil {
		return now, false, callerr.Seal(fmt.Errorf("%w: settle: %w", callerr.ErrUnavailable, err))
	}
	return now, d.Answer == protocol.Apply, nil
}
