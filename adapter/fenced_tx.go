package adapter

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// FencedTx runs fn in a transaction that commits only if a is still the current attempt
// of its record, and that renews a's lease. The attempt goes on afterwards. It is for
// workers that hold a lease for long and change rows meanwhile.
//
// The error is [semel.ErrLeaseLost], with nothing committed, if another attempt has
// changed the record. Otherwise it is [semel.ErrUnavailable] and wraps the error of fn or
// of the store; the transaction may then have been committed if fn has returned nil.
// FencedTx takes at most RecordTimeout, even if ctx ends.
func FencedTx[Tx any](ctx context.Context, e *semel.Engine[Tx], a *Attempt, fn func(ctx context.Context, tx Tx) error) error {
	return engine.FencedTx(ctx, e, a, fn)
}

// AfterTx has fn called once after the transaction of ctx has ended, committed or not,
// and reports whether ctx belongs to a transaction that e has begun: see [semel.TxOf]. fn
// must be fast.
func AfterTx(ctx context.Context, e semel.Runner, fn func()) bool {
	return engine.AfterTx(ctx, engine.CoreOf(e), fn)
}

// Records reads the current records of calls in one round trip, in their order. A call
// without a record has one whose State is Absent. The calls must be of operations whose
// keys carry no time.
func Records(ctx context.Context, e semel.Runner, calls []semel.Call) ([]store.Record, error) {
	return engine.Records(ctx, engine.CoreOf(e), calls)
}

// OutboxOf returns the outbox in the database of e's records, or nil if the store has
// none. It is for package outbox.
func OutboxOf[Tx any](e *semel.Engine[Tx]) store.Outbox[Tx] { return engine.OutboxOf(e) }

// OutboxReaderOf is [OutboxOf] for an engine whose type is not known, and for reading only. It
// is nil for an engine of [semel.NewRunner].
func OutboxReaderOf(e semel.Runner) store.OutboxReader {
	return engine.OutboxReaderOf(engine.CoreOf(e))
}

// Report sends an event about a record to the Observer of e.
func Report(ctx context.Context, e semel.Runner, kind event.Kind, r store.Record, err error) {
	engine.Report(ctx, engine.CoreOf(e), kind, r, err)
}
