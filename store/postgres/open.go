package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// open begins the transaction and reads what stands. A number for the
// transaction is taken at once, to find out by it what became of it if somebody
// else ends it.
func (t *transaction) open(ctx context.Context, hold bool) error {
	if hold {
		return t.openHeld(ctx)
	}
	b := t.beginning()
	b.Queue(t.store.texts.open).Query(t.readNumber)
	b.Queue(t.tables.look, uuid(t.id)).Query(t.readStands)
	return t.start(ctx, b).Close()
}

// beginning is what goes in a trip that begins with the transaction.
func (t *transaction) beginning() *pgx.Batch {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.level})
	return b
}

// start sends what begins with a transaction.
func (t *transaction) start(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	t.session = t.conn.Conn()
	results := t.session.SendBatch(ctx, b)
	t.wire = t.session.PgConn().Conn()
	t.tx = results.Tx()
	return results
}

// openHeld is open with the right to the record. Most records are new, so it asks
// only whether there is one: to read what is not there costs the server as much as
// to begin. The setting that keeps this to the index is given back as it was seen
// last, and afterwards by itself if it was another.
func (t *transaction) openHeld(ctx context.Context) error {
	if of := pooledOf(t.conn.Conn()); of != nil && of.tx != nil && t.store.quick {
		return t.openQuickly(ctx, of)
	}
	b, o := t.beginning(), &t.begun
	o.noScans = t.store.noScans.Load()
	var number pgtype.Text
	b.Queue(t.store.texts.openHeld, rightTo(t.id)).QueryRow(func(row pgx.Row) error { return row.Scan(&o.scans, &number) })
	b.Queue(t.tables.exists(o.noScans), uuid(t.id)).QueryRow(func(row pgx.Row) error { return row.Scan(nil, &o.there) })
	if err := t.start(ctx, b).Close(); err != nil {
		return err
	}
	if t.store.quick {
		pooledFor(t.session).tx = t.tx
	}
	o.number = number.String
	return t.seeWhatStands(ctx)
}

// readMore gives the setting back that was another, and reads the record that
// there is.
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
		b.Queue(t.tables.look, uuid(t.id)).Query(t.readStands)
	}
	return t.session.SendBatch(ctx, b).Close()
}

// rightTo is the number that stands for the right to a record.
func rightTo(id store.ID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// readStands reads what stands, which is nulls where nothing does. The first column
// is a setting that was given back.
func (t *transaction) readStands(rows pgx.Rows) error {
	for rows.Next() {
		if rows.RawValues()[1] == nil {
			continue
		}
		r, err := readRecord(rows, nil)
		if err != nil {
			return err
		}
		t.stands.Token, t.stands.Record = r.Token, r
	}
	return rows.Err()
}

// readNumber reads the transaction's number. The other columns are the settings
// that were made.
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
