package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// openQuickly is openHeld on a connection that was used before. What was prepared
// there may be gone, and is then prepared anew.
func (t *transaction) openQuickly(ctx context.Context, of *pooled, exists string, noScans bool) error {
	t.session, t.wire, t.tx, t.of = of.conn, of.conn.PgConn().Conn(), of.tx, of
	o, err := t.openOnce(ctx, exists)
	if codeOf(err) == codeNoStatement {
		of.forget()
		if t.status() != outside {
			if err := t.say(ctx, `ROLLBACK`); err != nil {
				return err
			}
		}
		o, err = t.openOnce(ctx, exists)
	}
	if err != nil {
		return err
	}
	t.number, t.stands.Busy = o.number, o.number == ""
	if t.stands.Busy {
		return nil
	}
	return t.readMore(ctx, o.scans, (o.scans == "off") != noScans, o.there)
}

// opening is what the server has said at the begin.
type opening struct {
	scans, number string
	there         bool
}

// What ends the transaction is prepared before it begins, so that its end is sent
// by nothing but its last trip.
func (t *transaction) openOnce(ctx context.Context, exists string) (o opening, err error) {
	if err := t.of.ready(ctx, t.tables.ends, `COMMIT`); err != nil {
		return o, err
	}
	b, err := t.of.put(ctx,
		said{text: t.store.texts.begin},
		said{t.store.texts.openHeld, func(r *raw) { r.int64(rightTo(t.id)) }},
		said{exists, func(r *raw) { r.id(t.id) }},
	)
	if err != nil {
		return o, err
	}
	err = t.of.send(ctx, b, func(n int, r *pgconn.ResultReader) {
		for r.NextRow() {
			switch v := r.Values(); n {
			case 1:
				o.scans, o.number = string(v[0]), string(v[1])
			case 2:
				o.there = string(v[1]) == "t"
			}
		}
	})
	return o, err
}

// finishQuickly is finish for a record that is new.
func (t *transaction) finishQuickly(ctx context.Context, last *store.Change) (store.Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	var e ending
	err := within(t.session, t.store.commitBound, func() error {
		b, err := t.of.put(ctx, said{t.tables.ends, func(r *raw) { r.change(last); r.text(t.number) }}, said{text: `COMMIT`})
		if err != nil {
			return err
		}
		return t.of.send(ctx, b, func(n int, r *pgconn.ResultReader) {
			switch tag, err := r.Close(); {
			case err != nil: // which is told by the whole as well
			case n == 0:
				e.same, e.made = true, true
			default:
				e.tag = tag.String()
			}
		})
	})
	return t.finished(ctx, last, &e, err)
}

// finished says what became of the transaction, or of the one there was instead.
func (t *transaction) finished(ctx context.Context, last *store.Change, e *ending, err error) (store.Verdict, error) {
	if !e.same && codeOf(err) == codeDivisionByZero {
		return t.gone(ctx, last, nil)
	}
	return t.commitVerdict(last, e, err)
}
