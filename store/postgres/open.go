package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// open takes a connection, begins the transaction, takes the exclusive right to the record with hold, and
// reads the current record. It assigns the transaction's number at once. The number
// shows how the transaction ended if the handler ends it.
func (t *transaction) open(ctx context.Context, hold bool) (err error) {
	if t.conn, err = t.store.source.acquire(ctx); err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.level})
	if hold {
		b.Queue(t.store.texts.openHeld, rightTo(t.id)).Query(t.readNumber)
	} else {
		b.Queue(t.store.texts.open).Query(t.readNumber)
	}
	b.Queue(t.tables.look, uuid(t.id)).Query(t.scanCurrent)
	t.session = t.conn.Conn
	results := t.session.SendBatch(ctx, b)
	t.tx = results.Tx()
	if err := results.Close(); err != nil {
		return err
	}
	if t.number == "" {
		t.current = store.SwapResult{Busy: true}
	}
	return nil
}

// rightTo returns the key of the advisory lock for a record.
func rightTo(id store.ID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// scanCurrent reads the current record, whose columns are null if there is none. The
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

// readNumber reads the transaction's number, which is null if another transaction has
// the right. The other columns are settings.
func (t *transaction) readNumber(rows pgx.Rows) error {
	var number pgtype.Text
	for rows.Next() {
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &number
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read the transaction's number: %w", err)
		}
	}
	t.number = number.String
	return rows.Err()
}
