package semel

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
)

// Do runs fn once for the key of c. The effect may be anywhere. Every caller
// receives the same result: the stored one, decoded, also the first caller.
// replayed means that an earlier attempt, or another caller's, made it.
//
// The claim is committed before fn runs. The operation's [Policy] decides what
// happens to the key if fn's process crashes. After an error of fn the effect is
// unknown, unless the error is marked [NotCommitted] or [Final], or the operation
// classifies it. Under Hold such a key is in doubt until it is resolved, and the
// returned error says so.
//
// The context of fn ends with ctx, and with the cause [ErrLeaseLost] when the lease
// may be lost. The end of ctx does not undo what fn has done: the outcome is
// recorded all the same.
//
// Within the function of a [DoTx] over the same connection pool, an operation with
// policy Atomic is ErrInvalid, because InTx would open a second transaction. On a
// store that lets one transaction write at a time, such as SQLite, every operation
// is.
//
// A panic of fn continues after the record is left in a true state.
func Do[T any](ctx context.Context, e Runner, c Call, fn func(ctx context.Context) (T, error)) (v T, replayed bool, err error) {
	a, out, err := Begin(ctx, e, c)
	if err != nil {
		return v, false, err
	}
	if out != nil {
		return replayedResult[T](out)
	}
	defer a.Abandon()
	own, fnErr := fn(a.ctx)
	stored := a.txOutcome.Load() != nil || fnErr != nil // the outcome comes from InTx or a probe, and not from fn's value
	out, err = a.end(codec.ValueRef[T]{Ptr: &own}, fnErr, stored)
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
// the outcome together: one effect per key, through any crash. replayed means that
// an earlier attempt, or another caller's, made the result.
//
// DoTx within another transaction of the store or of its connection pool, of any
// engine, is ErrInvalid: under load, all connections could belong to transactions
// that wait for a second one. A transaction that does not begin within
// Options.RecordTimeout, because all connections are in use for instance, is
// [ErrUnavailable]; fn was not called then.
//
// The operation's policy must be unset or [Atomic]; any other is ErrInvalid. Unless
// the policy is Atomic with a Lease, the call is one transaction, and a crash
// leaves nothing behind. fn must not end tx, and must make all its writes in tx. An
// error or a panic of fn rolls them back, which proves that nothing was committed:
// the operation's OnError, or [Final], decides what happens then. A transaction
// that the database aborts because of a conflict with others, such as a
// serialization failure or a deadlock, runs again, with fn, up to eight times in
// all.
func DoTx[T, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context, tx Tx) (T, error)) (v T, replayed bool, err error) {
	if err := c.valid(); err != nil {
		return v, false, callerr.Seal(err)
	}
	run := func(ctx context.Context, tx any) (any, error) {
		var err error
		v, err = fn(ctx, tx.(Tx))
		return codec.ValueRef[T]{Ptr: &v}, err
	}
	var out *Outcome
	switch {
	case c.op.inline():
		out, err = e.runInline(ctx, c, run)
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
	a, out, err := c.begin(ctx, &call, protocol.Atomic)
	if a == nil {
		return out, err
	}
	defer a.Abandon()
	return a.End(nil, a.runTx(a.ctx, fn))
}

// Begin claims the key of c for an adapter that cannot pass its work as a function.
// Exactly one of the attempt, the outcome and the error is not nil: the adapter
// must run and end the attempt; the outcome is a replay.
func Begin(ctx context.Context, e Runner, c Call) (*Attempt, *Outcome, error) {
	a, out, err := begin(ctx, e.core(), &c)
	return a, out, callerr.Seal(err)
}

func begin(ctx context.Context, core *Core, c *Call) (*Attempt, *Outcome, error) {
	if err := c.valid(); err != nil {
		return nil, nil, err
	}
	if err := c.notByGeneration(); err != nil {
		return nil, nil, err
	}
	return core.begin(ctx, c, c.op.policy.kind.OrDefault())
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
