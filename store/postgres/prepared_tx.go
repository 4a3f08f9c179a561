package postgres

import (
	"context"
	"strconv"

	"github.com/semelgo/semel/store"
)

// openPrepared is openHeld on a connection that was used before. If a prepared
// statement is missing there, all are prepared again.
func (t *transaction) openPrepared(ctx context.Context, of *preparedConn) error {
	t.on(of)
	err := t.openOnce(ctx)
	if codeOf(err) == codeNoStatement {
		of.forget()
		if t.status() != outside {
			if err := t.say(ctx, `ROLLBACK`); err != nil {
				return err
			}
		}
		err = t.openOnce(ctx)
	}
	if err != nil {
		return err
	}
	return t.readCurrent(ctx)
}

func (t *transaction) on(of *preparedConn) {
	t.session, t.wire, t.tx, t.of = of.conn, of.conn.PgConn().Conn(), of.tx, of
}

// beginReply is the server's reply to the begin.
type beginReply struct {
	noScans       bool // expected
	scans, number string
	there         bool
}

// row reads a row of one of the statements that open a transaction.
func (o *beginReply) row(n int, columns [][]byte) {
	switch n {
	case 1:
		o.scans, o.number = string(columns[0]), string(columns[1])
	case 2:
		o.there = columns[1][0] != 0
	}
}

func (*beginReply) done(int, []byte) {}

// openOnce prepares the statements that end the transaction before it begins, so that
// the last round trip prepares nothing.
func (t *transaction) openOnce(ctx context.Context) error {
	if err := t.of.ready(ctx, t.tables.ended, `COMMIT`); err != nil {
		return err
	}
	t.beginReply = beginReply{noScans: t.store.noScans.Load()}
	t.of.out.reset()
	if err := t.of.add(ctx, t.store.texts.begin, noArgs); err != nil {
		return err
	}
	if err := t.addOpening(ctx, t.store.texts.openHeld, t.tables.exists(t.beginReply.noScans)); err != nil {
		return err
	}
	return t.of.sendAsLongAs(ctx, &t.beginReply)
}

// addOpening adds the statements after BEGIN.
func (t *transaction) addOpening(ctx context.Context, held, exists string) error {
	if err := t.of.add(ctx, held, func(r *encoder) { r.int64(rightTo(t.id)) }); err != nil {
		return err
	}
	return t.of.add(ctx, exists, func(r *encoder) { r.id(t.id) })
}

// readCurrent takes the current record from the server's reply to the begin, and reads
// the rest if the reply does not have all of it.
func (t *transaction) readCurrent(ctx context.Context) error {
	o := &t.beginReply
	t.number, t.current.Busy = o.number, o.number == ""
	if t.current.Busy {
		return nil
	}
	return t.readMore(ctx, o.scans, (o.scans == "off") != o.noScans, o.there)
}

// finishPrepared is finish for a change that isFinalInsert.
func (t *transaction) finishPrepared(ctx context.Context, last *store.Change) (store.Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	var e preparedEnd
	err := within(t.session, t.store.commitBound, func() error {
		if err := t.addEnd(ctx, last); err != nil {
			return err
		}
		return t.of.send(ctx, &e)
	})
	if codeOf(err) == codeNoStatement {
		t.of.forget()
	}
	return t.finished(ctx, last, &e.endReply, err)
}

// addEnd adds the statements that end the transaction.
func (t *transaction) addEnd(ctx context.Context, last *store.Change) error {
	t.of.out.reset()
	number, _ := strconv.ParseUint(t.number, 10, 64) // otherwise it matches no transaction
	if err := t.of.add(ctx, t.tables.ended, func(r *encoder) { r.outright(last); r.int64(int64(number)) }); err != nil {
		return err
	}
	return t.of.add(ctx, `COMMIT`, noArgs)
}

// preparedEnd is the server's reply to the end of a transaction.
type preparedEnd struct{ endReply }

func (*preparedEnd) row(int, [][]byte) {}

func (e *preparedEnd) done(n int, tag []byte) {
	switch n {
	case 0:
		e.same, e.made = true, true
	case 1:
		e.tag = string(tag)
	}
}

// finished returns the verdict on the transaction, or on another one that the handler
// has begun instead.
func (t *transaction) finished(ctx context.Context, last *store.Change, e *endReply, err error) (store.Verdict, error) {
	if !e.same && codeOf(err) == codeDivisionByZero {
		return t.gone(ctx, last, nil)
	}
	return t.commitVerdict(last, e, err)
}
