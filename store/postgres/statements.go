package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

const (
	// most is the largest batch whose changes are statements of their own; for
	// more, arrays are quicker.
	most = 4
	// maxTrip bounds what one trip carries, in bytes of inputs and outcomes.
	maxTrip = 16 << 20
)

// swapItem is one change of a batch.
type swapItem struct {
	*store.Change

	answer *store.SwapResult
	made   bool
	lacks  error // why a new record has no partition, unless the record exists
}

// portions divides items into what one trip carries.
func portions(items []swapItem) [][]swapItem {
	var all [][]swapItem
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
func queue(b *pgx.Batch, t *tables, items []swapItem) {
	if len(items) > most {
		queueMany(b, t, items)
		return
	}
	for i := range items {
		queueOne(b, t, &items[i])
	}
}

func queueOne(b *pgx.Batch, t *tables, it *swapItem) {
	k, args := statement(it.Change)
	b.Queue(t.one[k], args...).Exec(func(tag pgconn.CommandTag) error {
		it.made = tag.RowsAffected() == 1
		return nil
	})
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
		args := make([]any, 0, 15) // with one that is put behind them
		return k, append(args,
			uuid(to.ID), made.state, made.attempt, made.owner, due, expires, to.Tainted,
			[]byte(to.Operation), []byte(to.Scope), []byte(to.Key), to.Fingerprint,
			int16(to.Priority), to.Input, to.Outcome,
		)
	}
	args := []any{uuid(to.ID), asked.state, asked.attempt, asked.owner, c.IfDue}
	if k == beat {
		return k, append(args, due, expires)
	}
	return k, append(args, made.state, made.attempt, made.owner, due, expires, to.Tainted, to.Input, to.Outcome)
}

// queueMany queues one statement for each kind of change. Each returns the IDs of the
// changes that it has made: a worker may claim a created record before the current
// records are read.
func queueMany(b *pgx.Batch, t *tables, items []swapItem) {
	var sorted [kinds][]*swapItem
	for i := range items {
		it := &items[i]
		k := kindOf(it.Change)
		sorted[k] = append(sorted[k], it)
	}
	for k, items := range sorted {
		if len(items) == 0 {
			continue
		}
		b.Queue(t.many[k], bulkArgs(items)...).Query(func(rows pgx.Rows) error {
			made := make(map[store.ID]bool, len(items))
			err := eachID(func(id store.ID) { made[id] = true })(rows)
			for _, it := range items {
				it.made = made[it.To.ID]
			}
			return err
		})
	}
}
