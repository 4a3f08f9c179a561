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
	if !hold && s.level != pgx.ReadCommitted {
		return store.NotCommitted, fmt.Errorf("begin: %w", ErrIsolation)
	}
	on, err := s.tables(ctx)
	if err == nil {
		err = s.gate.enter(ctx)
	}
	if err != nil {
		return store.NotCommitted, s.fault("begin", withConflict(err))
	}
	t := &transaction{store: s, tables: on, id: id}
	defer t.leave(ctx) // also when run panics or ends its goroutine
	if err := t.open(ctx, hold); err != nil {
		t.leave(ctx)
		return store.NotCommitted, s.fault("begin", withConflict(err))
	}
	if t.current.Busy {
		t.leave(ctx)
		return tellBusy(ctx, run)
	}
	tx, err := handle(t)
	if err != nil {
		t.leave(ctx)
		return store.NotCommitted, s.fault("begin", err)
	}
	last, failed := run(ctx, tx, t.current)
	verdict, err := t.end(ctx, last, failed)
	if unconfirmed := t.confirmCurrent(ctx); unconfirmed != nil && failed != nil {
		return verdict, unconfirmed
	} else if unconfirmed != nil {
		return verdict, errors.Join(err, unconfirmed)
	}
	return verdict, err
}

func tellBusy[Tx any](ctx context.Context,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	var none Tx
	last, err := run(ctx, none, store.SwapResult{Busy: true})
	if err == nil || last != nil {
		err = ErrBusy
	}
	return store.NotCommitted, err
}

// confirm waits until a standby has what the connection has read. Its server must be the
// one that was read, so it is no other connection.
func (s *Store) confirm(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.commitBound)
	defer cancel()
	if _, err := conn.Exec(ctx, sqlConfirm); err != nil {
		return err
	}
	return cancelledWait(conn)
}

// confirmCurrent confirms a final record that a transaction has shown to its run, if
// standbys must have it. What run returned for the record does not count without it.
func (t *transaction) confirmCurrent(ctx context.Context) error {
	if !t.store.replicated.Load() || !t.current.Token.State.Final() {
		return nil
	}
	if t.left || t.session.IsClosed() {
		return t.store.fault("confirm the record", errConnLost)
	}
	if t.status() != outside { // the end of the transaction has failed
		if err := t.say(ctx, `ROLLBACK`); err != nil {
			return t.store.fault("confirm the record", err)
		}
	}
	if err := t.store.confirm(ctx, t.session); err != nil {
		return t.store.fault("confirm the record", err)
	}
	return nil
}
