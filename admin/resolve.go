package admin

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// Resolution is the decision of an operator, or of a reconciler, on a record in
// doubt.
type Resolution struct {
	ID store.ID
	// Attempt is the number of the record's last attempt, if the decision is about that
	// attempt: a record with another one is ErrNotInDoubt. Zero: any.
	Attempt uint32
	// To is Succeeded, Failed, or Pending. Pending means that no attempt had an
	// effect, and the key may be tried again.
	To store.State
	// Result is, for Succeeded, the result that the operation would have returned.
	// Nil means that the result is not known: retries get ErrResultUnavailable.
	Result any
	// Failure is, for Failed, the failure that retries receive.
	Failure *semel.Failure
	// Actor and Reason are the operator and the reason. Both are required, and kept
	// if the store keeps notes.
	Actor, Reason string
}

// Resolve resolves a record in doubt and returns the current record.
func Resolve(ctx context.Context, e semel.Runner, r Resolution) (store.Record, error) {
	return engine.Resolve(ctx, engine.CoreOf(e), engine.Resolution(r))
}

// Cancel ends a Pending record, or asks a running attempt to stop. It returns the
// current record.
//
// A Pending record becomes Failed, with the code "cancelled" and the reason; if an
// earlier attempt may have had an effect, it becomes InDoubt. If an attempt is
// running, Cancel asks its worker to cancel the function's context with the cause
// [semel.ErrCancelled]. The worker sees the request with its next [adapter.RenewLeases]; if
// it ends before that, the next worker sees it. The function's error then decides:
// an error with proof that nothing was committed makes the record Failed, any other
// error InDoubt, and a success stays one. Attempts of direct calls do not see the
// request. A record that is final, InDoubt or absent does not change.
func Cancel(ctx context.Context, e semel.Runner, id store.ID, reason string) (store.Record, error) {
	return engine.Cancel(ctx, engine.CoreOf(e), id, "", reason)
}

// CancelAs is Cancel for an operator with a name. If a Pending record ends and
// the store keeps notes, the actor and the reason are kept. A request to a running
// attempt has no note.
func CancelAs(ctx context.Context, e semel.Runner, id store.ID, actor, reason string) (store.Record, error) {
	if actor == "" {
		return store.Record{}, callerr.Invalid("Actor", "is required")
	}
	return engine.Cancel(ctx, engine.CoreOf(e), id, actor, reason)
}
