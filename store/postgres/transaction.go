package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

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
	of      *pooled // to end it past the driver's batches; nil if it must go by them
	id      store.ID
	number  string // PostgreSQL's, empty if the right was not to be had
	stands  store.SwapResult
	use
	left bool // everything is given back, or will be

	begun opening   // what the server said at the begin
	taken time.Time // when the connection was
	next  *waiter   // who was promised the connection
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
		if err := t.prove(ctx); isEnded(err) {
			return t.gone(ctx, last, failed)
		} else if err != nil {
			return t.cut(ctx, true, errors.Join(failed, fmt.Errorf("%w: %w", errLost, err)))
		}
	}
	return t.decide(ctx, last, failed)
}

// decide ends a transaction that is in use by nobody else.
func (t *transaction) decide(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	switch {
	case t.met != nil:
		return t.rollBack(ctx, instead(store.ErrConflict, t.met, failed, isConflict))
	case t.isOff(failed):
		return t.rollBack(ctx, instead(store.ErrInterrupted, t.off, failed, isBroken))
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
	same bool   // it was the one that was begun
	made bool   // the last change was
	tag  string // of COMMIT
}

func (e *ending) isSame(pgconn.CommandTag) error { e.same = true; return nil }

func (e *ending) isMade(pgconn.CommandTag) error { e.same, e.made = true, true; return nil }

func (e *ending) isOver(tag pgconn.CommandTag) error { e.tag = tag.String(); return nil }

// finish makes the last change, if there is one, and commits, if this is still the
// transaction that was begun.
func (t *transaction) finish(ctx context.Context, last *store.Change) (store.Verdict, error) {
	if t.of != nil && last != nil && isOutright(last) {
		return t.finishQuickly(ctx, last)
	}
	var e ending
	b := &pgx.Batch{}
	switch {
	case last == nil:
		b.Queue(sqlSameTx, t.number).Exec(e.isSame)
	case kindOf(last) == create:
		_, args := statement(last)
		b.Queue(t.tables.ends, append(args, t.number)...).Exec(e.isMade)
	default:
		b.Queue(sqlSameTx, t.number).Exec(e.isSame)
		t.queueLast(b, last, e.isMade)
	}
	b.Queue(`COMMIT`).Exec(e.isOver)
	return t.finished(ctx, last, &e, t.send(ctx, b))
}

// keep rolls back what run did, and makes the change that keeps its failure in a
// transaction of its own. The right to the record went with the first one, which
// does no harm: who takes it before the failure stands finds it in the way of the
// last change, and if an outcome comes in between, the failure is not in force.
func (t *transaction) keep(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	if verdict, err := t.undo(ctx, last, failed); t.left {
		return verdict, err
	}
	var e ending
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.level})
	b.Queue(t.store.texts.keep)
	k, args := statement(last)
	b.Queue(t.tables.last[k], args...).Exec(e.isMade)
	b.Queue(`COMMIT`).Exec(e.isOver)
	return t.commitVerdict(last, &e, t.send(ctx, b))
}

// send sends what ends a transaction, under a bound of its own.
func (t *transaction) send(ctx context.Context, b *pgx.Batch) error {
	return sendWithin(ctx, t.session, b, t.store.commitBound)
}

// commitVerdict says what the answer to the last statements means. That to COMMIT is
// proof, whatever became of the connection then: the server commits before it says so.
func (t *transaction) commitVerdict(last *store.Change, e *ending, err error) (store.Verdict, error) {
	switch {
	case e.tag == `COMMIT`:
		return store.Committed, nil
	case err == nil:
		return store.NotCommitted, fmt.Errorf("commit: the server has rolled back: %w", t.cause())
	case !e.made && last != nil && t.tables.notInForce(last, err):
		return store.NotCommitted, fmt.Errorf("record %s: %w", t.id, store.ErrSuperseded)
	case !e.made && last != nil && t.tables.hasNoPlace(err):
		return store.NotCommitted, t.store.fault("commit", withoutPlace(last, err))
	case rollsBack(err) || notSent(err):
		return store.NotCommitted, t.store.fault("commit", withMark(err))
	default:
		return store.Unknown, t.store.fault("commit", err)
	}
}

// queueLast queues a last change that moves what stands. The settings are given
// back, because triggers may be waiting for the COMMIT.
func (t *transaction) queueLast(b *pgx.Batch, last *store.Change, made func(pgconn.CommandTag) error) {
	k, args := statement(last)
	b.Queue(t.store.texts.lent.made)
	b.Queue(t.tables.last[k], args...).Exec(made)
	b.Queue(t.store.texts.lent.givenBack)
}

// notInForce says that the last change raised because something else stood.
func (t *tables) notInForce(last *store.Change, err error) bool {
	e := errorOf(err)
	switch {
	case e == nil:
		return false
	case kindOf(last) == create:
		return t.stoodAlready(err)
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
