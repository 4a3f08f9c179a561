package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// Atomic begins, takes the exclusive right and reads the current record in one round
// trip. It makes the last change and commits in another, with a limit of ten seconds.
// The right is an advisory lock on the last eight bytes of the ID, for the transaction. If another transaction has it, run
// receives Busy and a nil transaction. Transactions of Atomic use at most all but one
// of the pool's connections; further callers wait until ctx ends, in their order.
//
// The handler's transaction cannot be committed or rolled back, which returns
// [ErrEnded]; its Begin makes savepoints. If the handler has ended it all the same, by
// SQL, the error is ErrEnded and store.ErrTxEndedByHandler, and the verdict says what
// is known, for which the server has ten seconds; the change is not made. If run
// ignores an error that aborted the transaction, nothing is committed, and Atomic
// returns that error. A transaction in which PostgreSQL aborted a statement because of
// a conflict fails with store.ErrConflict, whatever run returned. A transaction whose
// connection was lost, or in which a statement was interrupted (by a timeout for a
// lock or of a statement, a cancellation, or because the server shut down or ran out
// of a resource), fails with store.ErrInterrupted; only if run rolled back to a
// savepoint before that statement, and succeeded, it succeeds.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx pgx.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return atomically(ctx, s, id, hold, func(t *transaction) (pgx.Tx, error) { return &handlerTx{guardedTx{t.tx, t}}, nil }, run)
}

// atomically is Atomic with the transaction that handle makes for run.
func atomically[Tx any](ctx context.Context, s *Store, id store.ID, hold bool, handle func(t *transaction) (Tx, error),
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if !hold && s.options.Isolation != pgx.ReadCommitted {
		return store.NotCommitted, fmt.Errorf("begin: %w", ErrIsolation)
	}
	conn, err := s.admit(ctx)
	if err != nil {
		return store.NotCommitted, s.fault("begin", withConflict(err))
	}
	t := &transaction{store: s, conn: conn, id: id}
	defer t.leave(ctx) // also when run panics or ends its goroutine
	if err := t.open(ctx, hold); err != nil {
		return store.NotCommitted, s.fault("begin", withConflict(err))
	}
	if t.current.Busy {
		t.leave(ctx)
		var none Tx
		last, err := run(ctx, none, t.current)
		if err == nil || last != nil {
			err = ErrBusy
		}
		return store.NotCommitted, err
	}
	tx, err := handle(t)
	if err != nil {
		return store.NotCommitted, s.fault("begin", err)
	}
	last, failed := run(ctx, tx, t.current)
	verdict, err := t.end(ctx, last, failed)
	switch unconfirmed := t.confirmCurrent(ctx); {
	case unconfirmed == nil:
		return verdict, err
	case failed != nil:
		return verdict, unconfirmed
	default:
		return verdict, errors.Join(err, unconfirmed)
	}
}

// confirmCurrent waits until a standby has a final record that a transaction has shown to
// its run, if standbys must have it. What run returned for the record does not count
// without it. The server must be the one that was read, so it is no other connection.
func (t *transaction) confirmCurrent(ctx context.Context) (err error) {
	if !t.store.replicated.Load() || !t.current.Token.State.Final() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.store.commitBound)
	defer cancel()
	switch {
	case t.left || t.conn.IsClosed():
		err = errConnLost
	case t.status() != outside: // the end of the transaction has failed
		err = t.say(ctx, `ROLLBACK`)
	}
	if err == nil {
		_, err = t.conn.Exec(ctx, sqlConfirm)
	}
	if err == nil {
		err = cancelledWait(t.conn.Conn)
	}
	return t.store.fault("confirm the record", err)
}
