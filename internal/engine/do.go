package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
)

// Do runs fn once for the key of c.
func Do[T any](ctx context.Context, e Runner, c Call, fn func(ctx context.Context) (T, error)) (v T, replayed bool, err error) {
	a, out, err := Begin(ctx, e, c)
	if err != nil {
		return v, false, err
	}
	if out != nil {
		return replayedResult[T](out)
	}
	defer a.Abandon()                                   //nolint:contextcheck // an attempt has its own context
	own, fnErr := fn(a.ctx)                             //nolint:contextcheck // see above
	stored := a.txOutcome.Load() != nil || fnErr != nil // the outcome comes from InTx or a probe, and not from fn's value
	out, err = a.end(&own, fnErr, stored)               //nolint:contextcheck // see above
	switch {
	case err != nil:
		var none T
		return none, false, callerr.Seal(err)
	case out == nil:
		return own, false, nil
	case fnErr != nil:
		return replayedResult[T](out)
	default:
		out.lossless = out.lossless && !stored
		return firstResult(out, own)
	}
}

// firstResult returns the outcome to the caller whose function returned v. It is
// decoded, as for every other caller. A tombstone cannot be decoded, so only this
// caller has the value.
func firstResult[T any](out *Outcome, v T) (T, bool, error) {
	if !out.Replayed && (out.lossless || codec.IsTombstone(out.Record.Outcome)) {
		return v, false, nil
	}
	return replayedResult[T](out)
}

// DoTx runs fn once for the key of c, in a transaction that commits fn's effect and
// the outcome together: one effect per key, through any crash.
func DoTx[T, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context, tx Tx) (T, error)) (v T, replayed bool, err error) {
	if err := c.valid(); err != nil {
		return v, false, callerr.Seal(err)
	}
	run := func(ctx context.Context, tx any) (any, error) {
		var err error
		v, err = fn(ctx, tx.(Tx))
		return &v, err
	}
	var out *Outcome
	switch {
	case c.op.inline:
		out, err = e.runInline(ctx, c, run, nil)
	case c.op.policy.kind.Transactional():
		out, err = e.runLeased(ctx, c, run)
	default:
		return v, false, callerr.Seal(callerr.Invalid("Policy", "must be Atomic or unset for DoTx: record and effect commit together"))
	}
	if err != nil {
		var none T
		return none, false, callerr.Seal(err)
	}
	return firstResult(out, v)
}

// runLeased commits the claim, then runs fn and ends the attempt in one
// transaction.
func (c *Core) runLeased(ctx context.Context, call Call, fn func(context.Context, any) (any, error)) (*Outcome, error) {
	a, out, err := c.begin(ctx, &call)
	if a == nil {
		return out, err
	}
	defer a.Abandon()                     //nolint:contextcheck // an attempt has its own context
	return a.End(nil, a.runTx(a.ctx, fn)) //nolint:contextcheck // see above
}

// Begin claims the key of c for an adapter that cannot pass its work as a function.
func Begin(ctx context.Context, e Runner, c Call) (*Attempt, *Outcome, error) {
	a, out, err := e.core().begin(ctx, &c)
	return a, out, callerr.Seal(err)
}

// replayedResult returns the result of a replay. A result that is not available is
// an error, and still a replay.
func replayedResult[T any](out *Outcome) (v T, replayed bool, err error) {
	err = out.Decode(&v)
	if err != nil && !errors.Is(err, callerr.ErrResultUnavailable) {
		return v, false, err
	}
	return v, out.Replayed, err
}
