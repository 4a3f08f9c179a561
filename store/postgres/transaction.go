package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
)

// transaction is one Atomic, and the connection it has.
type transaction struct {
	store   *Store
	tables  *tables
	conn    *pgxpool.Conn // to give it back
	session *pgx.Conn
	wire    net.Conn
	tx      pgx.Tx
	id      store.ID
	number  string // PostgreSQL's, empty if the right was not to be had
	stands  store.Standing
	use
	left bool // everything is given back, or will be
}

// The server's word for where a session is, as the driver last heard it.
const (
	outside = 'I' // of any transaction
	inside  = 'T'
	aborted = 'E'
)

func (t *transaction) status() byte { return t.session.PgConn().TxStatus() }

// end ends the transaction as run has decided.
func (t *transaction) end(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	sealed := t.seal()
	switch {
	case !sealed:
		return t.cut(ctx, false, errors.Join(failed, errors.New("semel/postgres: the handler has left a call under way")))
	case t.status() == outside:
		return t.gone(ctx, last, failed)
	case t.session.IsClosed():
		return t.cut(ctx, true, t.lost(failed))
	case t.session.PgConn().IsBusy():
		return t.cut(ctx, false, cmp.Or(failed, errors.New("semel/postgres: the handler has left a result open")))
	case t.status() == inside && t.mayHaveEnded():
		if err := t.say(ctx, proveRun); isEnded(err) {
			return t.gone(ctx, last, failed)
		} else if err != nil {
			return t.cut(ctx, true, errors.Join(failed, fmt.Errorf("%w: %w", errLost, err)))
		}
		t.proven()
	}
	return t.decide(ctx, last, failed)
}

// decide ends a transaction that is in use by nobody else.
func (t *transaction) decide(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	switch {
	case t.met != nil:
		return t.rollBack(ctx, instead(store.ErrConflict, t.met, failed, isConflict))
	case t.isOff(failed):
		return t.rollBack(ctx, instead(store.ErrBroken, t.off, failed, isBroken))
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
	if t.status() == aborted { // nothing can be prepared before it is undone
		if err := t.say(ctx, undoRun); isEnded(err) {
			return t.gone(ctx, last, failed)
		} else if err != nil {
			return t.cut(ctx, true, errors.Join(failed, fault("undo", err)))
		}
	}
	return t.finish(ctx, last, failed)
}

// say runs statements without parameters or rows, under a bound of their own. It
// does not prepare them, which an aborted transaction refuses.
func (t *transaction) say(ctx context.Context, statements string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	_, err := t.session.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return err
}

// ending is what the server has said of the statements that end a transaction.
type ending struct {
	closed, made bool
	tag          string // of COMMIT
}

// finish makes the last change, if there is one, and commits. When run failed,
// what it did is undone first.
func (t *transaction) finish(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	var e ending
	b := &pgx.Batch{}
	closing := keepRun
	if failed != nil {
		closing = undoRun
	}
	b.Queue(closing).Exec(func(pgconn.CommandTag) error { e.closed = true; return nil })
	if last != nil {
		t.queueLast(b, last, func(pgconn.CommandTag) error { e.made = true; return nil })
	}
	b.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error { e.tag = tag.String(); return nil })
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	err := t.session.SendBatch(bounded, b).Close()
	switch {
	case err == nil && e.tag == `COMMIT`:
		return store.Committed, nil
	case err == nil:
		return store.NotCommitted, fmt.Errorf("commit: the server has rolled back: %w", t.cause())
	case !e.closed && isEnded(err):
		return t.gone(ctx, last, failed)
	case e.closed && !e.made && last != nil && notInForce(last, err):
		return store.NotCommitted, fmt.Errorf("record %s: %w", t.id, store.ErrNotInForce)
	case e.closed && !e.made && last != nil && hasNoPlace(err):
		return store.NotCommitted, fault("commit", withoutPlace(last, err))
	case rollsBack(err) || notSent(err):
		return store.NotCommitted, fault("commit", withMark(err))
	default:
		return store.Unknown, fault("commit", err)
	}
}

// queueLast queues the last change. An insert has no plan to choose; the others
// give the settings back, because triggers may be waiting for the COMMIT.
func (t *transaction) queueLast(b *pgx.Batch, last *store.Change, made func(pgconn.CommandTag) error) {
	k, args := statement(last)
	if k == create {
		b.Queue(t.tables.last[k], args...).Exec(made)
		return
	}
	b.Queue(t.store.texts.lent.made)
	b.Queue(t.tables.last[k], args...).Exec(made)
	b.Queue(t.store.texts.lent.givenBack)
}

// notInForce says that the last change raised because something else stood.
func notInForce(last *store.Change, err error) bool {
	e := errorOf(err)
	switch {
	case e == nil:
		return false
	case kindOf(last) == create:
		return e.Code == codeUnique && ofRecords(e.TableName)
	default:
		return e.Code == codeDivisionByZero
	}
}

// notSent says that the statements were not sent, because one of them could not
// be prepared or a parameter not be written.
func notSent(err error) bool {
	_, ok := errors.AsType[pgx.ErrPreprocessingBatch](err)
	return ok
}

// rollBack ends the transaction because of cause, without a COMMIT. If the
// savepoint is not there, the handler has ended the transaction before.
func (t *transaction) rollBack(ctx context.Context, cause error) (store.Verdict, error) {
	switch err := t.say(ctx, undoRun+`; ROLLBACK`); {
	case err == nil:
		return store.NotCommitted, withMark(cause)
	case isEnded(err):
		return t.gone(ctx, nil, cause)
	default:
		return t.cut(ctx, true, cause)
	}
}
