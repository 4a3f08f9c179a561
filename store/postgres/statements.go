package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

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
func portions(items []swapItem) (all [][]swapItem) {
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
func (w *swapper) queue(b *pgx.Batch, items []swapItem) {
	if len(items) > most {
		queueMany(b, w.on, items)
		return
	}
	for i := range items {
		k, args := statement(items[i].Change)
		text := w.on.in(oneOf[k])
		if w.note != nil {
			text, args = w.on.noted(k, args, items[i].Change, w.note)
		}
		b.Queue(text, args...).Exec(func(tag pgconn.CommandTag) error {
			items[i].made = tag.RowsAffected() == 1
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

// The statements of each kind.
//
//nolint:gochecknoglobals // constants
var (
	oneOf  = [kinds]string{sqlCreate + orNothing, sqlMove, sqlBeat}                                           // change one record, or none
	lastOf = [kinds]string{sqlCreate, raising + sqlMove + orRaise, raising + sqlBeat + orRaise}               // change one record, or raise
	manyOf = [kinds]string{sqlCreateMany + returningID, sqlMoveMany + returningID, sqlBeatMany + returningID} // change many records, and return the IDs of the changed ones
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

// noted returns the statement that changes one record and writes a note, or does
// neither. The note's parameters follow those of the change.
func (t *tables) noted(k kind, args []any, c *store.Change, n *store.Note) (string, []any) {
	from, to, last := stored(c.If), stored(c.To.Token), len(args)
	text := raising + oneOf[k] + fmt.Sprintf(noting, last+1, last+2, last+3, last+4, last+5, last+6, last+7, last+8, last+9)
	return t.in(text), append(args, uuid(c.To.ID), from.state, from.attempt, from.owner, to.state, to.attempt, to.owner,
		[]byte(n.Actor), []byte(n.Reason))
}

// queueMany queues one statement for each kind of change. Each returns the IDs of the
// changes that it has made: a worker may claim a created record before the current
// records are read.
func queueMany(b *pgx.Batch, t *tables, items []swapItem) {
	var sorted [kinds][]*swapItem
	for i := range items {
		k := kindOf(items[i].Change)
		sorted[k] = append(sorted[k], &items[i])
	}
	for k, items := range sorted {
		if len(items) == 0 {
			continue
		}
		b.Queue(t.in(manyOf[k]), bulkArgs(items)...).Query(func(rows pgx.Rows) error {
			ids, err := pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
			made := make(map[store.ID]bool, len(ids))
			for _, id := range ids {
				made[id.Bytes] = true
			}
			for _, it := range items {
				it.made = made[it.To.ID]
			}
			return err
		})
	}
}

// bulkArgs returns the parameters of a bulk statement: one array for each parameter
// of the single statement.
func bulkArgs(items []*swapItem) []any {
	rows := make([][]any, len(items))
	for i, it := range items {
		_, rows[i] = statement(it.Change)
	}
	args := make([]any, len(rows[0]))
	for j, arg := range rows[0] {
		switch arg.(type) {
		case pgtype.UUID:
			args[j] = column[pgtype.UUID](rows, j)
		case pgtype.Int8:
			args[j] = column[pgtype.Int8](rows, j)
		case int16:
			args[j] = column[int16](rows, j)
		case int32:
			args[j] = column[int32](rows, j)
		case int64:
			args[j] = column[int64](rows, j)
		case bool:
			args[j] = column[bool](rows, j)
		case []byte:
			args[j] = column[[]byte](rows, j)
		}
	}
	return args
}

func column[T any](rows [][]any, j int) []T {
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = row[j].(T)
	}
	return values
}
