package semel

import (
	"context"

	"github.com/semelgo/semel/internal/engine"
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
	return engine.Do(ctx, e, c, fn)
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
	return engine.DoTx(ctx, e, c, fn)
}

// DoBatch is [DoTx] for a function that returns all its statements at once: the
// record, the statements and the commit go to the database in one round trip, and
// are applied together or not at all. B is the driver's type of a batch, such as
// *pgx.Batch; a store that takes no batches, or another type, is ErrInvalid.
//
// fn returns the result before anything is sent, so DoBatch is not for results that
// the database computes. fn must do nothing but build the statements and the
// result, anew in each call: it is called before it is known that the key is new,
// and again after each transaction that was aborted because of a conflict. An error
// of fn proves that nothing was committed, and so does an error of a statement,
// which rolls everything back. The operation's OnError, [Final] or its Retry decide
// what happens then, as with DoTx.
//
// Like DoTx, it must not be called within another transaction of the connection
// pool, and waits for a connection for Options.RecordTimeout at most.
//
// Statements must not end the transaction. After they are sent, DoBatch waits for
// the reply within a limit of the store, even if ctx ends. The operation's policy
// must be unset or [Atomic] without a Lease, and it must not have a Generation; any
// other is ErrInvalid.
func DoBatch[T, B, Tx any](ctx context.Context, e *Engine[Tx], c Call, fn func(ctx context.Context) (T, B, error)) (v T, replayed bool, err error) {
	return engine.DoBatch(ctx, e, c, fn)
}

// InTx runs fn in a transaction that commits together with the outcome of the
// attempt of ctx. It is for the function of [Do], or the handler of an adapter, if
// the operation's policy is [Atomic]: the claim is committed before; effect and
// outcome commit together, fenced. The function of such an operation must call InTx
// before it returns success, also if there is nothing to do.
//
// The value of fn is the outcome, unless the adapter encodes another. After an
// error the transaction is rolled back and the attempt continues: InTx may be
// called again. InTx runs fn again if the database aborted the transaction because
// of a conflict with others, up to eight times in all. After InTx has returned nil,
// the operation has succeeded, and nothing else that its function does changes that.
// If the function returns success although InTx failed, the attempt is released,
// because the effect was rolled back with the transaction.
func InTx[T, Tx any](ctx context.Context, e *Engine[Tx], fn func(ctx context.Context, tx Tx) (T, error)) (T, error) {
	return engine.InTx(ctx, e, fn)
}

// TxOf returns the transaction that e opened for the operation of ctx: inside the
// function of [DoTx] or [InTx], or inside a handler whose adapter runs it in one.
// It is the transaction of the innermost operation: inside the function of a [Do]
// that a function of DoTx calls there is none, because that function's writes must
// not commit or roll back with the outer transaction.
func TxOf[Tx any](ctx context.Context, e *Engine[Tx]) (Tx, bool) {
	return engine.TxOf(ctx, e)
}
