package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// open begins the transaction and reads the current record. It assigns the
// transaction's number at once. The number shows how the transaction ended if the
// handler ends it.
func (t *transaction) open(ctx context.Context, hold bool) error {
	if hold {
		return t.openHeld(ctx)
	}
	b := t.beginning()
	b.Queue(t.store.texts.open).Query(t.readNumber)
	b.Queue(t.tables.look, uuid(t.id)).Query(t.scanCurrent)
	return t.start(ctx, b).Close()
}

// beginning returns the first statements of the transaction.
func (t *transaction) beginning() *pgx.Batch {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.level})
	return b
}

// start sends the first statements.
func (t *transaction) start(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	t.session = t.conn.Conn()
	results := t.session.SendBatch(ctx, b)
	t.wire = t.session.PgConn().Conn()
	t.tx = results.Tx()
	return results
}

// openHeld is open with the exclusive right to the record. Most records are new, so
// it only checks whether there is one: reading a missing record costs the server as
// much as the begin. The setting that forces the index is restored to the value
// that it had last, and corrected if it was another.
func (t *transaction) openHeld(ctx context.Context) error {
	if of := preparedConnOf(t.conn.Conn()); of != nil && of.tx != nil && t.store.quick {
		return t.openPrepared(ctx, of)
	}
	b, o := t.beginning(), &t.beginReply
	o.noScans = t.store.noScans.Load()
	var number pgtype.Text
	b.Queue(t.store.texts.openHeld, rightTo(t.id)).QueryRow(func(row pgx.Row) error { return row.Scan(&o.scans, &number) })
	b.Queue(t.tables.exists(o.noScans), uuid(t.id)).QueryRow(func(row pgx.Row) error { return row.Scan(nil, &o.there) })
	if err := t.start(ctx, b).Close(); err != nil {
		return err
	}
	if t.store.quick {
		newPreparedConn(t.session).tx = t.tx
	}
	o.number = number.String
	return t.readCurrent(ctx)
}

// readMore corrects the setting, and reads the record.
func (t *transaction) readMore(ctx context.Context, scans string, other, there bool) error {
	if !other && !there {
		return nil
	}
	b := &pgx.Batch{}
	if other {
		t.store.noScans.Store(scans == "off")
		b.Queue(`SELECT set_config('enable_seqscan', $1::text, true)`, scans)
	}
	if there {
		b.Queue(t.store.texts.lent.made)
		b.Queue(t.tables.look, uuid(t.id)).Query(t.scanCurrent)
	}
	return t.session.SendBatch(ctx, b).Close()
}

// rightTo returns the key of the advisory lock for a record.
func rightTo(id store.ID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// readStands reads the current record, whose columns are null if there is none. The
// first column is a restored setting.
func (t *transaction) scanCurrent(rows pgx.Rows) error {
	for rows.Next() {
		if rows.RawValues()[1] == nil {
			continue
		}
		r, err := readRecord(rows, nil)
		if err != nil {
			return err
		}
		t.current.Token, t.current.Record = r.Token, r
	}
	return rows.Err()
}

// readNumber reads the transaction's number. The other columns are settings.
func (t *transaction) readNumber(rows pgx.Rows) error {
	for rows.Next() {
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &t.number
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read the transaction's number: %w", err)
		}
	}
	return rows.Err()
}
