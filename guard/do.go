package guard

import (
	"context"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/errtype"
)

// Do is the mode "lock, check, execute" for an effect outside of the record's
// database. It claims the key, which is the lock; calls check, which looks for the
// effect and must not write; and if check does not find it, calls execute. Every caller
// receives the same result, as from [semel.Do]. replayed also means that check has found
// the effect.
//
// The lock is a lease of the record, which Do renews. A lock alone does not exclude a
// process that was paused: when it continues, another process may have the lock.
// execute therefore receives the fencing token: the number of the attempt. The receiver
// of the effect must store the largest number of each key, and reject smaller ones. The
// operation's policy should be [semel.Fenced], whose raise makes the receiver reject
// older attempts before check is called again after a crash.
//
// The context of check and execute ends with the cause [semel.ErrLeaseLost] when the
// lease may be lost. Do then does not call execute any more. A result of execute is
// reported as success only if no other attempt has changed the record; otherwise the
// caller receives what the record says.
//
// An error of check proves that this attempt had no effect, so the key can be tried
// again at once. What an error of execute means is up to its marks, as in semel.Do.
func Do[T any](ctx context.Context, e semel.Runner, c semel.Call,
	check func(ctx context.Context) (v T, found bool, err error), execute func(ctx context.Context, fence uint32) (T, error),
) (v T, replayed bool, err error) {
	found := false
	v, replayed, err = semel.Do(ctx, e, c, func(ctx context.Context) (v T, err error) {
		a, ok := semel.AttemptOf(ctx)
		if !ok {
			return v, &semel.FieldError{Field: "ctx", Reason: "has no attempt"}
		}
		if v, found, err = check(ctx); err != nil {
			return v, unexecuted(a, fmt.Errorf("check: %w", err))
		}
		if found {
			return v, nil
		}
		if err := context.Cause(ctx); err != nil {
			return v, unexecuted(a, err)
		}
		return execute(ctx, a.Number())
	})
	return v, replayed || found, err
}

// unexecuted marks the error of an attempt that has executed nothing. That says
// nothing about earlier attempts, so the error of a tainted attempt has no mark.
func unexecuted(a *semel.Attempt, err error) error {
	if a.Record().Tainted {
		return err
	}
	return notCommitted(err)
}

// notCommitted marks err as [semel.NotCommitted] does, and keeps other marks.
func notCommitted(err error) error {
	if _, marked := errtype.Find[*callerr.MarkedError](err); marked {
		return err
	}
	return semel.NotCommitted(err)
}

// DoTx is the mode "lock, check, execute" for an effect in the record's own database:
// the lock is held by the transaction of [semel.DoTx], in which check and execute run.
// A fencing token is not needed, because an attempt that has lost the record cannot
// commit.
func DoTx[T, Tx any](ctx context.Context, e *semel.Engine[Tx], c semel.Call,
	check func(ctx context.Context, tx Tx) (v T, found bool, err error), execute func(ctx context.Context, tx Tx) (T, error),
) (v T, replayed bool, err error) {
	found := false
	v, replayed, err = semel.DoTx(ctx, e, c, func(ctx context.Context, tx Tx) (v T, err error) {
		if v, found, err = check(ctx, tx); err != nil || found {
			return v, err
		}
		return execute(ctx, tx)
	})
	return v, replayed || found, err
}
