package admin

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Settle records one entry of a journal, as the engine that wrote it would have:
// with the same token, within RecordTimeout. It returns the current record, and
// whether that has the entry's outcome, by this call or an earlier one. If not, the
// entry was superseded, and nothing was changed. After [semel.ErrUnavailable] nothing is
// known; calling Settle again is safe. The entry stays in the journal.
func Settle(ctx context.Context, e semel.Runner, entry journal.Entry) (now store.Record, recorded bool, err error) {
	return engine.Settle(ctx, engine.CoreOf(e), entry)
}
