package adapter

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// Dequeue claims at most limit due calls of op for a worker: those of the highest
// priority first, and of these the ones that have been due for longest. They are
// attempts like those of [Begin], but nothing renews their leases: call
// [RenewLeases] for all of them, more often than the heartbeat of op's
// [TimesOf]. Call [Attempt.Prepare] before the function of each, and end each.
// Their contexts end with ctx. For attempts after the first, Dequeue also checks
// whether the key was cancelled.
//
// An error means that the store did not answer, or that ctx had ended. Calls that
// were claimed nevertheless are released, and do not count as crashes. Each round
// trip takes at most RecordTimeout, even if ctx ends.
//
// With a store that is no [store.Dequeuer], the calls that have been due for
// longest are claimed; the priority counts only among the hundred calls (or limit,
// if that is more) that it reads.
func Dequeue(ctx context.Context, e semel.Runner, op semel.Declared, limit int) ([]*Attempt, error) {
	return engine.Dequeue(ctx, engine.CoreOf(e), op, limit)
}

// RenewLeases renews the leases of attempts of [Dequeue] in one round trip. It
// cancels the context of an attempt that was taken over with the cause
// [semel.ErrLeaseLost], and of an attempt whose key was cancelled with [semel.ErrCancelled]. It
// skips attempts that have ended. If the store does not answer, no context is
// cancelled before its last confirmed lease has expired. RenewLeases waits at most
// until the next heartbeat is due.
func RenewLeases(ctx context.Context, e semel.Runner, attempts []*Attempt) {
	engine.RenewLeases(ctx, engine.CoreOf(e), attempts)
}

// CheckWorker returns why workers of this engine cannot run op, as a *FieldError,
// or nil. The operation must have [semel.Retry] and be one that the engine was given,
// because otherwise no sweeper would settle the records of crashed workers. inTx
// means that functions run in the transaction of [semel.InTx], which requires policy
// [semel.Atomic].
func CheckWorker(e semel.Runner, op semel.Declared, inTx bool) error {
	return engine.CheckWorker(engine.CoreOf(e), op, inTx)
}

// Completion is the end of one attempt, to be recorded together with others.
type Completion = engine.Completion

// CompleteMany ends attempts as [Attempt.End] does, in one round trip. It returns
// those that it could not end: because they ended in an error, their record was
// busy or superseded, or the store did not answer. End each of them alone. None of
// them has delayed or changed the end of another.
func CompleteMany(ctx context.Context, e semel.Runner, ends []*Completion) (rest []*Completion) {
	return engine.CompleteMany(ctx, engine.CoreOf(e), ends)
}

// Times are the durations of an operation's attempts.
type Times = engine.Times

// TimesOf returns the durations of op: its own, and otherwise the engine's.
func TimesOf(e semel.Runner, op semel.Declared) Times {
	return engine.TimesOf(engine.CoreOf(e), op)
}
