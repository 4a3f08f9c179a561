package semel

import (
	"context"
	"errors"
)

// Do runs fn once for the key of c, wherever its effect is, and returns the
// same result to everyone who asks: the stored one, decoded, also to the first
// caller. replayed says that an earlier attempt, or another caller's, made it.
//
// The claim is committed before fn runs. What happens to the key when fn's
// process dies is the operation's [Policy]. An error of fn is Unknown, unless
// it is marked [NotCommitted] or [Final], or the operation classifies it: under
// Hold such a key is in doubt until somebody resolves it, and the error returned
// says so.
//
// fn gets a context that ends with ctx, and with cause [ErrLeaseLost] when it
// can no longer count on its lease. ctx ending does not undo what fn did: the
// outcome is recorded all the same.
//
// Within the function of a [DoTx] of the same connection pool, an operation with policy
// Atomic is ErrInvalid, because InTx would open a second transaction; and so is every
// operation where the store lets one transaction write at a time, as SQLite does.
//
// A panic of fn goes on after the record is left in the state that is true.
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
	stored := a.txOutcome.Load() != nil || fnErr != nil // what InTx or evidence says, not what fn returned
	out, err = a.end(valueRef[T]{&own}, fnErr, stored)
	switch {
	case err != nil:
		var none T
		return none, false, seal(err)
	case out == nil:
		return own, false, nil
	case fnErr != nil:
		return replayedResult[T](out)
	default:
		out.lossless = out.lossless && !stored
		return firstResult(out, own)
	}
}

// given is what the caller receives whose function returned v: the outcome, decoded, as
// every other caller does. A result that is stored as a tombstone cannot be decoded, and
// only this caller has it.
func firstResult[T any](out *Outcome, v T) (T, bool, error) {
	if !out.Replayed && (out.lossless || isTombstone(out.Record.Outcome)) {
		return v, false, nil
	}
	return replayedResult[T](out)
}

// DoTx runs fn once for the key of c, in a transaction that commits fn's effect
// and the outcome together: one effect per key, whatever crashes. replayed says
// that an earlier attempt, or another caller's, made the result.
//
// It must not be called within another transaction of the store or of its connection pool,
// of whichever engine, which is ErrInvalid: under load, all connections could belong to
// transactions that wait for a second one. A transaction that does not begin within
// Options.RecordTimeout, because all connections are in use for instance, is
// [ErrUnavailable]; fn was not called then.
//
// The operation's policy is unset or [Atomic]; any other is ErrInvalid. Unless
// the operation says Atomic with a Lease, all of it is one transaction, and a
// crash leaves nothing behind. fn must not end tx, and its writes must all be
// in tx. An error or a panic of fn rolls them back, which is proof: what that
// leads to is the operation's OnError, or [Final]. A transaction that the
// database gives up in favour of others, as with a serialization failure or a
// deadlock, is run again, fn included, up to eight times in all.
func DoTx[T, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context, tx Tx) (T, error)) (v T, replayed bool, err error) {
	if err := c.valid(); err != nil {
		return v, false, seal(err)
	}
	run := func(ctx context.Context, tx any) (any, error) {
		var err error
		v, err = fn(ctx, tx.(Tx))
		return valueRef[T]{&v}, err
	}
	var out *Outcome
	switch {
	case c.op.inline():
		out, err = e.runInline(ctx, c, run)
	case c.op.policy.kind == policyAtomic:
		out, err = e.runLeased(ctx, c, run)
	default:
		return v, false, seal(invalid("Policy", "must be Atomic or unset for DoTx: the record shares the fate of the effect"))
	}
	if err != nil {
		var none T
		return none, false, seal(err)
	}
	return firstResult(out, v)
}

// runLeased commits the claim, then runs fn and ends the attempt in one
// transaction.
func (c *Core) runLeased(ctx context.Context, call Call, fn func(context.Context, any) (any, error)) (*Outcome, error) {
	a, out, err := c.begin(ctx, &call, policyAtomic)
	if a == nil {
		return out, err
	}
	defer a.Abandon()
	return a.End(nil, a.runTx(a.ctx, fn))
}

// Begin claims the key of c for an adapter that cannot pass its work as a
// function. Of the attempt, the outcome and the error exactly one is not nil:
// the attempt is to be run and ended, the outcome is a replay.
func Begin(ctx context.Context, e Runner, c Call) (*Attempt, *Outcome, error) {
	a, out, err := begin(ctx, e.core(), &c)
	return a, out, seal(err)
}

func begin(ctx context.Context, core *Core, c *Call) (*Attempt, *Outcome, error) {
	if err := c.valid(); err != nil {
		return nil, nil, err
	}
	if err := c.notByGeneration(); err != nil {
		return nil, nil, err
	}
	return core.begin(ctx, c, c.op.policy.orHold())
}

// decoded is what a replay returns. A result that cannot be given is an error,
// and still a replay.
func replayedResult[T any](out *Outcome) (v T, replayed bool, err error) {
	err = out.Decode(&v)
	if err != nil && !errors.Is(err, ErrResultUnavailable) {
		return v, false, err
	}
	return v, out.Replayed, err
}
