package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// open begins the transaction, takes the exclusive right to the record with hold, and
// reads the current record. It assigns the transaction's number at once. The number
// shows how the transaction ended if the handler ends it.
func (t *transaction) open(ctx context.Context, hold bool) error {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: t.store.options.Isolation})
	b.Queue(t.store.texts.open, rightTo(t.id, hold)).Query(t.readNumber)
	b.Queue(t.conn.on.in(sqlLook), uuid(t.id)).Query(t.scanCurrent)
	results := t.conn.SendBatch(ctx, b)
	t.tx = results.Tx()
	if err := results.Close(); err != nil {
		return err
	}
	if t.number == "" {
		t.current = store.SwapResult{Busy: true}
	}
	return nil
}

// rightTo returns the key of the advisory lock for a record, and null without hold.
func rightTo(id store.ID, hold bool) pgtype.Int8 {
	return pgtype.Int8{Int64: int64(binary.BigEndian.Uint64(id[8:])), Valid: hold}
}

// scanCurrent reads the current record, whose columns are null if there is none. The
// first column is a restored setting.
func (t *transaction) scanCurrent(rows pgx.Rows) error {
	for rows.Next() {
		if rows.RawValues()[1] == nil {
			continue
		}
		r, err := newReader(1).read(rows)
		if err != nil {
			return err
		}
		t.current = store.SwapResult{Token: r.Token, Record: &r}
	}
	return rows.Err()
}

// readNumber reads the transaction's number, which is null if another transaction has
// the right. The other columns are settings.
func (t *transaction) readNumber(rows pgx.Rows) error {
	for rows.Next() {
		t.number = string(rows.RawValues()[0])
	}
	return rows.Err()
}
