package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// openQuickly is openHeld on a connection that was used before. What was prepared
// there may be gone, and is then prepared anew.
func (t *transaction) openQuickly(ctx context.Context, of *pooled) error {
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
	return t.seeWhatStands(ctx)
}

func (t *transaction) on(of *pooled) {
	t.session, t.wire, t.tx, t.of = of.conn, of.conn.PgConn().Conn(), of.tx, of
}

// opening is what the server has said at the begin.
type opening struct {
	noScans       bool // is expected
	scans, number string
	there         bool
}

// read reads the result of one of the statements that open a transaction.
func (o *opening) read(n int, r *pgconn.ResultReader) {
	for r.NextRow() {
		switch v := r.Values(); n {
		case 1:
			o.scans, o.number = string(v[0]), string(v[1])
		case 2:
			o.there = string(v[1]) == "t"
		}
	}
}

// What ends the transaction is prepared before it begins, so that its end is sent
// by nothing but its last trip.
func (t *transaction) openOnce(ctx context.Context) error {
	if err := t.of.ready(ctx, t.tables.ends, `COMMIT`); err != nil {
		return err
	}
	if err := t.readyForNext(ctx); err != nil {
		return err
	}
	t.begun = opening{noScans: t.store.noScans.Load()}
	b, err := t.of.put(ctx, t.opens(t.store.texts.openHeld, t.tables.exists(t.begun.noScans), said{text: t.store.texts.begin})...)
	if err != nil {
		return err
	}
	return t.of.send(ctx, b, t.begun.read)
}

// opens are the statements that open the transaction, behind those it begins with.
func (t *transaction) opens(held, exists string, begin ...said) []said {
	return append(begin,
		said{held, func(r *raw) { r.int64(rightTo(t.id)) }},
		said{exists, func(r *raw) { r.id(t.id) }},
	)
}

// seeWhatStands takes what the server said at the begin, and asks for more if that is
// not all.
func (t *transaction) seeWhatStands(ctx context.Context) error {
	o := &t.begun
	t.number, t.stands.Busy = o.number, o.number == ""
	if t.stands.Busy {
		return nil
	}
	return t.readMore(ctx, o.scans, (o.scans == "off") != o.noScans, o.there)
}

// finishQuickly is finish for a record that is new. The same trip begins the next
// transaction, if somebody waits for the connection.
func (t *transaction) finishQuickly(ctx context.Context, last *store.Change) (store.Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	var e ending
	next := t.successor()
	err := within(t.session, t.store.commitBound, func() error {
		ends := said{t.tables.ends, func(r *raw) { r.change(last); r.text(t.number) }}
		all := []said{ends, {text: `COMMIT`}}
		if next != nil {
			all = next.opens(t.store.texts.openNext, t.tables.existsNext(next.begun.noScans), ends, said{text: commitNext})
		}
		b, err := t.of.put(ctx, all...)
		if err != nil {
			return err
		}
		return t.of.send(ctx, b, func(n int, r *pgconn.ResultReader) {
			if n >= 2 {
				next.begun.read(n-1, r)
				return
			}
			switch tag, err := r.Close(); {
			case err != nil: // which is told by the whole as well
			case n == 0:
				e.same, e.made = true, true
			default:
				e.tag = tag.String()
			}
		})
	})
	if codeOf(err) == codeNoStatement {
		t.of.forget()
	}
	switch {
	case next == nil:
	case err == nil && e.tag == `COMMIT`:
		t.handOn(ctx, next)
	case e.tag == `COMMIT`:
		err = nil // what failed is the next one
	}
	return t.finished(ctx, last, &e, err)
}

// finished says what became of the transaction, or of the one there was instead.
func (t *transaction) finished(ctx context.Context, last *store.Change, e *ending, err error) (store.Verdict, error) {
	if !e.same && codeOf(err) == codeDivisionByZero {
		return t.gone(ctx, last, nil)
	}
	return t.commitVerdict(last, e, err)
}
