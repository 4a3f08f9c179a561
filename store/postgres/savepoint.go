package postgres

import (
	"context"

	"github.com/semelgo/semel/store"
)

// A transaction that its handler may end is put behind a savepoint before that: if
// the savepoint is still there, so is the transaction, also when it is aborted and
// says nothing else of itself. It is not made earlier, because most handlers can
// do nothing of the kind, and each pays for it with two statements and a number
// for the subtransaction.
const (
	saveRun = `SAVEPOINT semel_run`
	undoRun = `ROLLBACK TO SAVEPOINT semel_run`
)

// save makes the savepoint, within a call of the handler's. Where it cannot, less
// will be known of the end.
func (t *transaction) save(ctx context.Context) {
	if t.saved || t.status() != inside {
		return
	}
	t.saved = t.say(ctx, saveRun) == nil
}

// prove fails with an error of isEnded when a transaction that is not aborted is
// not the one that was begun.
func (t *transaction) prove(ctx context.Context) error {
	err := t.say(ctx, `SELECT 1 / (pg_current_xact_id() = '`+t.number+`')::integer`)
	switch {
	case codeOf(err) == codeDivisionByZero:
		return errOtherTx
	case err != nil:
		return err
	}
	t.proven()
	return nil
}

// rollBack ends the transaction because of cause, without a COMMIT.
func (t *transaction) rollBack(ctx context.Context, cause error) (store.Verdict, error) {
	return t.undo(ctx, nil, cause)
}

// undo rolls back, before last where a failure is kept. If it is not the transaction
// that was begun, the handler has ended that before, and everything is given back;
// of one that is aborted only the savepoint tells.
func (t *transaction) undo(ctx context.Context, last *store.Change, cause error) (store.Verdict, error) {
	back := `ROLLBACK`
	exposed, sent := t.handed()
	switch {
	case t.saved:
		back = undoRun + `; ROLLBACK`
	case t.status() == aborted && (exposed || sent == reachBeyond):
		return t.gone(ctx, last, cause)
	}
	switch err := t.say(ctx, back); {
	case err == nil:
		return store.NotCommitted, withMark(cause)
	case isTxOver(err):
		return t.gone(ctx, last, cause)
	default:
		return t.cut(ctx, true, cause)
	}
}
