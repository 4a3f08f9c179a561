package postgres

import (
	"context"
	"strconv"

	"github.com/semelgo/semel/store"
)

// openQuickly is openHeld on a connection that was used before. What was prepared
// there may be gone, and is then prepared anew.
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

// opening is what the server has said at the begin.
type beginReply struct {
	noScans       bool // is expected
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

// What ends the transaction is prepared before it begins, so that its end is sent
// by nothing but its last trip.
func (t *transaction) openOnce(ctx context.Context) error {
	if err := t.of.ready(ctx, t.tables.ended, `COMMIT`); err != nil {
		return err
	}
	if err := t.readyForNext(ctx); err != nil {
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

// addOpening adds what opens the transaction, behind what it begins with.
func (t *transaction) addOpening(ctx context.Context, held, exists string) error {
	if err := t.of.add(ctx, held, func(r *encoder) { r.int64(rightTo(t.id)) }); err != nil {
		return err
	}
	return t.of.add(ctx, exists, func(r *encoder) { r.id(t.id) })
}

// seeWhatStands takes what the server said at the begin, and asks for more if that is
// not all.
func (t *transaction) readCurrent(ctx context.Context) error {
	o := &t.beginReply
	t.number, t.current.Busy = o.number, o.number == ""
	if t.current.Busy {
		return nil
	}
	return t.readMore(ctx, o.scans, (o.scans == "off") != o.noScans, o.there)
}

// finishPrepared is finish for a change that isFinalInsert. The same round trip
// begins the next transaction, if a caller waits for the connection.
func (t *transaction) finishPrepared(ctx context.Context, last *store.Change) (store.Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	e := preparedEnd{next: t.successor()}
	err := within(t.session, t.store.commitBound, func() error {
		if err := t.addEnd(ctx, last, e.next); err != nil {
			return err
		}
		return t.of.send(ctx, &e)
	})
	if codeOf(err) == codeNoStatement {
		t.of.forget()
	}
	if e.next != nil && e.tag == `COMMIT` && err == nil { // an error behind COMMIT is the next one's
		t.handOn(ctx, e.next)
	}
	return t.finished(ctx, last, &e.endReply, err)
}

// addEnd adds what ends the transaction, and what begins the next one, if there is one.
func (t *transaction) addEnd(ctx context.Context, last *store.Change, next *transaction) error {
	t.of.out.reset()
	number, _ := strconv.ParseUint(t.number, 10, 64) // otherwise it matches no transaction
	if err := t.of.add(ctx, t.tables.ended, func(r *encoder) { r.outright(last); r.int64(int64(number)) }); err != nil {
		return err
	}
	if next == nil {
		return t.of.add(ctx, `COMMIT`, noArgs)
	}
	if err := t.of.add(ctx, commitNext, noArgs); err != nil {
		return err
	}
	return next.addOpening(ctx, t.store.texts.openNext, t.tables.existsNext(next.beginReply.noScans))
}

// endingOne is what the server says of the end of a transaction, and of the begin of the
// next one.
type preparedEnd struct {
	endReply

	next *transaction // nil if there is none
}

func (e *preparedEnd) row(n int, columns [][]byte) {
	if n >= 2 {
		e.next.beginReply.row(n-1, columns)
	}
}

func (e *preparedEnd) done(n int, tag []byte) {
	switch n {
	case 0:
		e.same, e.made = true, true
	case 1:
		e.tag = string(tag)
	}
}

// finished says what became of the transaction, or of the one there was instead.
func (t *transaction) finished(ctx context.Context, last *store.Change, e *endReply, err error) (store.Verdict, error) {
	if !e.same && codeOf(err) == codeDivisionByZero {
		return t.gone(ctx, last, nil)
	}
	return t.commitVerdict(last, e, err)
}
