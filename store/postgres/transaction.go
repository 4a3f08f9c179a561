package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// transaction is one call of Atomic with its connection.
type transaction struct {
	store   *Store
	conn    lease
	tx      pgx.Tx
	id      store.ID
	number  string // PostgreSQL's number; empty if another transaction had the right
	current store.SwapResult
	guard
	left bool // everything is released, or will be
}

func (t *transaction) status() byte { return t.conn.PgConn().TxStatus() }

// end ends the transaction as run has decided.
func (t *transaction) end(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	sealed := t.seal()
	switch {
	case !sealed:
		return t.cut(ctx, false, errors.Join(failed, errors.New("semel/postgres: the handler has left a call under way")))
	case t.status() == outside:
		return t.gone(ctx, last, failed)
	case t.conn.IsClosed():
		return t.cut(ctx, true, errors.Join(failed, fmt.Errorf("%w: %w", errConnLost, cmp.Or(t.broken, failed, errConnLost))))
	case t.conn.PgConn().IsBusy():
		return t.cut(ctx, false, cmp.Or(failed, errors.New("semel/postgres: the handler has left a result open")))
	}
	return t.decide(ctx, last, failed)
}

// decide ends a transaction that no other goroutine uses.
func (t *transaction) decide(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	switch {
	case t.met != nil:
		return t.rollBack(ctx, instead(store.ErrConflict, t.met, failed, isConflict))
	case t.isOff(failed):
		return t.rollBack(ctx, instead(store.ErrInterrupted, t.off, failed, isInterrupted))
	case failed == nil && t.status() == aborted:
		return t.rollBack(ctx, fmt.Errorf("the handler passed over an error that aborted its transaction: %w", t.cause()))
	case failed != nil && (last == nil || isConflict(failed) || errors.Is(failed, store.ErrConflict)):
		return t.rollBack(ctx, failed)
	case last != nil && last.To.ID != t.id:
		return t.rollBack(ctx, fmt.Errorf("the last change is of record %s, not of %s", last.To.ID, t.id))
	case last != nil:
		if err := check(last); err != nil {
			return t.rollBack(ctx, err)
		}
	}
	if failed != nil {
		return t.keep(ctx, last, failed)
	}
	return t.finish(ctx, last)
}

// leave rolls an open transaction back and releases everything. The connection is closed
// if its state is unknown.
func (t *transaction) leave(ctx context.Context) {
	if t.left || !t.seal() {
		return
	}
	t.left = true
	if !t.conn.IsClosed() && t.status() != outside {
		_ = t.say(ctx, `ROLLBACK`) // if it fails, the connection is not used again
	}
	t.store.dismiss(t.conn)
}

// say runs statements without parameters or rows, with a time limit. It does not
// prepare them, because an aborted transaction refuses that.
func (t *transaction) say(ctx context.Context, statements string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	_, err := t.conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return err
}

// endReply is the server's reply to the statements that end a transaction.
type endReply struct {
	same bool   // it was the transaction that was begun
	made bool   // the last change was made
	tag  string // of COMMIT
}

func (e *endReply) isSame(pgconn.CommandTag) error { e.same = true; return nil }

func (e *endReply) isMade(pgconn.CommandTag) error { e.same, e.made = true, true; return nil }

func (e *endReply) isOver(tag pgconn.CommandTag) error { e.tag = tag.String(); return nil }

// finish makes the last change, if there is one, and commits, if this is still the
// transaction that was begun.
func (t *transaction) finish(ctx context.Context, last *store.Change) (store.Verdict, error) {
	var e endReply
	b := &pgx.Batch{}
	switch {
	case last == nil:
		b.Queue(sqlSameTx, t.number).Exec(e.isSame)
	case kindOf(last) == create:
		_, args := statement(last)
		b.Queue(t.conn.on.in(sqlEndCreate), append(args, t.number)...).Exec(e.isMade)
	default:
		b.Queue(sqlSameTx, t.number).Exec(e.isSame)
		k, args := statement(last)
		b.Queue(t.store.texts.lent.made) // restored afterwards, because deferred triggers may run at COMMIT
		b.Queue(t.conn.on.in(lastOf[k]), args...).Exec(e.isMade)
		b.Queue(t.store.texts.lent.givenBack)
	}
	b.Queue(`COMMIT`).Exec(e.isOver)
	err := t.send(ctx, b)
	switch {
	case !e.same && codeOf(err) == codeDivisionByZero:
		return t.gone(ctx, last, nil)
	case !e.same && t.conn.IsClosed() && t.sent != staysInside:
		return t.cut(ctx, true, fmt.Errorf("%w: %w", errConnLost, err))
	}
	return t.commitVerdict(last, &e, err)
}

// rollBack ends the transaction because of cause, without a COMMIT.
func (t *transaction) rollBack(ctx context.Context, cause error) (store.Verdict, error) {
	return t.undo(ctx, nil, cause)
}

// undo rolls back, before last if a failure is stored. If it is not the transaction
// that was begun, the handler has ended that one. An aborted transaction refuses the
// assertion, but not to go back to the savepoint.
func (t *transaction) undo(ctx context.Context, last *store.Change, cause error) (store.Verdict, error) {
	text := `ROLLBACK`
	switch {
	case t.status() == inside:
		text = strings.Replace(sqlSameTx, "$1", "'"+t.number+"'", 1) + `; ROLLBACK`
	case t.saved:
		text = `ROLLBACK TO SAVEPOINT semel_run; ROLLBACK`
	case t.sent == mayEndAndWrite:
		return t.gone(ctx, last, cause)
	}
	switch err := t.say(ctx, text); {
	case err == nil:
		return store.NotCommitted, withMark(cause)
	case codeOf(err) == codeDivisionByZero, codeOf(err) == codeNoSavepoint:
		return t.gone(ctx, last, cause)
	default:
		return t.cut(ctx, true, cause)
	}
}

// keep rolls back what run did, and stores its failure in another transaction. The
// exclusive right ended with the first one, which does no harm: a transaction that
// takes it before the failure is stored fails at its last change, and if it commits
// before, the failure is not stored.
func (t *transaction) keep(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	if verdict, err := t.undo(ctx, last, failed); t.left {
		return verdict, err
	}
	var e endReply
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.options.Isolation})
	b.Queue(t.store.texts.keyed.before[0])
	k, args := statement(last)
	b.Queue(t.conn.on.in(lastOf[k]), args...).Exec(e.isMade)
	b.Queue(`COMMIT`).Exec(e.isOver)
	return t.commitVerdict(last, &e, t.send(ctx, b))
}

// send sends the statements that end a transaction, with a time limit.
func (t *transaction) send(ctx context.Context, b *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	return t.conn.SendBatch(ctx, b).Close()
}

// commitVerdict returns the verdict for the replies to the last statements. A reply
// to COMMIT is proof, even if the connection is lost afterwards, because the server
// commits before it replies.
func (t *transaction) commitVerdict(last *store.Change, e *endReply, err error) (store.Verdict, error) {
	cancelled := cancelledWait(t.conn.Conn)
	switch {
	case cancelled != nil:
		return store.Unknown, t.store.fault("commit", cancelled)
	case e.tag == `COMMIT`:
		return store.Committed, nil
	case err == nil:
		return store.NotCommitted, fmt.Errorf("commit: the server has rolled back: %w", t.cause())
	case !e.made && last != nil && t.conn.on.isSuperseded(last, err):
		return store.NotCommitted, fmt.Errorf("record %s: %w", t.id, store.ErrSuperseded)
	case !e.made && last != nil && t.conn.on.hasNoPartition(err):
		return store.NotCommitted, t.store.fault("commit", noPartitionError(last, err))
	case rollsBack(err) || isNotSent(err):
		return store.NotCommitted, t.store.fault("commit", withMark(err))
	default:
		return store.Unknown, t.store.fault("commit", err)
	}
}

// isSuperseded reports whether the last change raised because the record had
// changed.
func (t *tables) isSuperseded(last *store.Change, err error) bool {
	if kindOf(last) == create {
		return t.recordExists(err)
	}
	return codeOf(err) == codeDivisionByZero
}

// isNotSent reports whether the statements were not sent, because one of them could
// not be prepared or an argument not be encoded.
func isNotSent(err error) bool {
	_, ok := errtype.Find[pgx.ErrPreprocessingBatch](err)
	return ok
}
