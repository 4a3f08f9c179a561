package admin

import (
	"context"
	"iter"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// RedriveRequest is an operator's decision to run a failed task or message again, or one
// that is InDoubt under a policy that allows another attempt.
type RedriveRequest struct {
	ID store.ID
	// Delay is the delay of the next attempt. Zero: none.
	Delay time.Duration
	// Actor and Reason are the operator and the reason. Both are required, and kept
	// if the store keeps notes.
	Actor, Reason string
}

// Redrive makes a task or a message Pending for another attempt, resets its errors
// and crashes, and returns the record. The record must have Failed, of an operation
// with [semel.Retry]; or be InDoubt under a policy that allows another attempt: Atomic,
// Keyed, Fenced or AtLeastOnce. The operation must be one that the engine was
// given, unless the record is a dead letter (see [IsDeadLetter]).
func Redrive(ctx context.Context, e semel.Runner, r RedriveRequest) (store.Record, error) {
	return engine.Redrive(ctx, engine.CoreOf(e), engine.RedriveRequest(r))
}

// Reschedule makes a Pending record due after delay, earlier or later than before,
// and returns the current record.
func Reschedule(ctx context.Context, e semel.Runner, id store.ID, delay time.Duration) (store.Record, error) {
	return engine.Reschedule(ctx, engine.CoreOf(e), id, delay)
}

// DeadLetters returns the dead letters of the operation with that name, or of all
// operations when the name is empty: first those that are InDoubt, then those that
// have Failed, in the order of their IDs. It reads them in pages, so records may be
// missed when other programs change them meanwhile, and they may be redriven while
// the loop runs. An error ends the sequence.
func DeadLetters(ctx context.Context, e semel.Runner, operation string) iter.Seq2[store.Record, error] {
	return engine.DeadLetters(ctx, engine.CoreOf(e), operation)
}
