package admin

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// Get returns the record of a key, and whether there is one. It changes nothing.
// The error is [semel.ErrUnavailable] if the store does not answer. If keys carry a time,
// Get finds the records of operations that the engine was given, and of other
// operations if their keys are UUIDv7 or ULIDs.
func Get(ctx context.Context, e semel.Runner, operation string, scope semel.Scope, key string) (store.Record, bool, error) {
	return engine.Get(ctx, engine.CoreOf(e), operation, scope, key)
}

// Read returns the record with that ID, or an Absent one. It changes nothing.
// The error is [semel.ErrUnavailable] if the store does not answer.
func Read(ctx context.Context, e semel.Runner, id store.ID) (store.Record, error) {
	return engine.Read(ctx, engine.CoreOf(e), id)
}

// List returns one page of records, for consoles and reports. If other callers
// write meanwhile, it may miss or repeat records.
func List(ctx context.Context, e semel.Runner, q store.Query) ([]store.Record, error) {
	return engine.List(ctx, engine.CoreOf(e), q)
}

// Counts counts the records by operation and state, in one snapshot. It may read all records,
// so a program keeps the result for a while. The error is errors.ErrUnsupported if the store
// cannot count, as those of Redis and etcd.
func Counts(ctx context.Context, e semel.Runner) ([]store.Count, error) {
	return engine.Counts(ctx, engine.CoreOf(e))
}

// Notes lists an operator's changes of a record, oldest first, and nothing if the
// store keeps no notes.
func Notes(ctx context.Context, e semel.Runner, id store.ID) ([]store.Note, error) {
	return engine.Notes(ctx, engine.CoreOf(e), id)
}

// Purge removes at most limit records past their retention. It returns the number
// of removed records.
func Purge(ctx context.Context, e semel.Runner, limit int) (int, error) {
	return engine.Purge(ctx, engine.CoreOf(e), limit)
}

// RecordIDs returns the possible IDs of a key's record when the operation's KeyTime
// is not known: the ID of a key without a time, and the ID of a UUIDv7 or ULID. It
// is for tools; an engine that was given the operation knows the ID.
func RecordIDs(operation string, scope semel.Scope, key string) []store.ID {
	return engine.RecordIDs(operation, scope, key)
}
