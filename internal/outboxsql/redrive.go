package outboxsql

import (
	"context"
	"strings"

	"github.com/semelgo/semel/store"
)

// Redrive asks the holder of the aggregate's lane to end its parking, and keeps a note.
func (t *Table[Tx]) Redrive(ctx context.Context, r store.OutboxRedrive) (was bool, err error) {
	text, args := `UPDATE semel_outbox_parked SET parking = ? WHERE aggregatetype = ? AND aggregateid = ? AND parking = 1`, []any{int64(r.To), r.Topic, r.Aggregate}
	if r.EventID != "" {
		if !isUUID(r.EventID) { // PostgreSQL would refuse to compare it
			return false, nil
		}
		text, args = text+` AND id = `+t.dialect.ID, append(args, r.EventID)
	}
	err = t.pool.Tx(ctx, func(c Conn) error {
		n, err := c.Exec(ctx, t.dialect.text(text), args...)
		if was = n > 0; err != nil || !was {
			return err
		}
		_, err = c.Exec(ctx, t.dialect.text(`INSERT INTO semel_outbox_notes (aggregatetype, aggregateid, id, type, parking, actor, reason, created)
SELECT aggregatetype, aggregateid, id, type, parking, ?, ?, `+t.dialect.Now+` FROM semel_outbox_parked WHERE aggregatetype = ? AND aggregateid = ?`),
			[]byte(r.Actor), []byte(r.Reason), r.Topic, r.Aggregate)
		return err
	})
	if err != nil {
		return false, t.dialect.Fault("redrive a parked aggregate", err)
	}
	return was, nil
}

// isUUID reports whether text has the form in which the IDs of events are stored.
func isUUID(text string) bool {
	for i, r := range text {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdef", r) {
			return false
		}
	}
	return len(text) == 36
}

// Notes lists operators' decisions.
func (t *Table[Tx]) Notes(ctx context.Context, limit int) (all []store.OutboxNote, err error) {
	text := `SELECT o.aggregatetype, o.aggregateid, ` + t.dialect.TextID + `, o.type, o.parking, o.actor, o.reason, ` +
		strings.ReplaceAll(t.dialect.Age, "created", "o.created") + ` FROM semel_outbox_notes o ORDER BY o.note DESC LIMIT ?`
	err = t.pool.Query(ctx, func(scan func(dest ...any) error) error {
		var n store.OutboxNote
		var parking, age int64
		var actor, reason []byte
		err := scan(&n.Topic, &n.Aggregate, &n.ID, &n.Type, &parking, &actor, &reason, &age)
		n.To, n.Actor, n.Reason, n.Age = store.Parking(parking), string(actor), string(reason), micros(age)
		all = append(all, n)
		return err
	}, t.dialect.text(text), int64(limit))
	if err != nil {
		return nil, t.dialect.Fault("list notes", err)
	}
	return all, nil
}
