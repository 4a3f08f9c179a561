package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

const (
	// most is the largest batch whose changes are statements of their own; for
	// more, arrays are quicker.
	most = 16
	// maxTrip bounds what one trip carries, in bytes of inputs and outcomes.
	maxTrip = 16 << 20
)

// portions divides items into what one trip carries.
func portions(items []item) [][]item {
	var all [][]item
	first, size := 0, 0
	for i := range items {
		n := len(items[i].To.Input) + len(items[i].To.Outcome)
		if size+n > maxTrip && i > first {
			all = append(all, items[first:i])
			first, size = i, 0
		}
		size += n
	}
	if first < len(items) {
		all = append(all, items[first:])
	}
	return all
}

// queue queues the statements that make the changes.
func queue(b *pgx.Batch, t *tables, items []item) {
	if len(items) > most {
		queueMany(b, t, items)
		return
	}
	for i := range items {
		k, args := statement(items[i].Change)
		made := &items[i].made
		b.Queue(t.one[k], args...).Exec(func(tag pgconn.CommandTag) error {
			*made = tag.RowsAffected() == 1
			return nil
		})
	}
}

// kind is how a change is made.
type kind int

const (
	create kind = iota
	move
	beat
	kinds
)

func kindOf(c *store.Change) kind {
	switch c.If {
	case store.Token{}:
		return create
	case c.To.Token:
		return beat
	default:
		return move
	}
}

// statement says how a change is made, and with which parameters.
func statement(c *store.Change) (kind, []any) {
	to, k := &c.To, kindOf(c)
	due, expires := times(to)
	made, asked := stored(to.Token), stored(c.If)
	if k == create {
		return k, []any{
			uuid(to.ID), made.state, made.attempt, made.owner, due, expires, to.Tainted,
			[]byte(to.Operation), []byte(to.Scope), []byte(to.Key), to.Fingerprint,
			int16(to.Priority), to.Input, to.Outcome,
		}
	}
	args := []any{uuid(to.ID), asked.state, asked.attempt, asked.owner, c.IfDue}
	if k == beat {
		return k, append(args, due, expires)
	}
	return k, append(args, made.state, made.attempt, made.owner, due, expires, to.Tainted, to.Input, to.Outcome)
}

// queueMany queues one statement for each kind of change.
func queueMany(b *pgx.Batch, t *tables, items []item) {
	var sorted [kinds][]*item
	for i := range items {
		k := kindOf(items[i].Change)
		sorted[k] = append(sorted[k], &items[i])
	}
	for k, items := range sorted {
		if len(items) > 0 {
			b.Queue(t.many[k], arrays(items)...).Query(func(rows pgx.Rows) error { return markMade(rows, items) })
		}
	}
}

// markMade reads the IDs of the changes that are in force.
func markMade(rows pgx.Rows, items []*item) error {
	made := make(map[store.ID]bool, len(items))
	for rows.Next() {
		var id pgtype.UUID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		made[id.Bytes] = true
	}
	for _, it := range items {
		it.made = made[it.To.ID]
	}
	return rows.Err()
}
