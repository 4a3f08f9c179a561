package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// groupKey is what changes of one bulk statement have in common: all values except
// those that differ from record to record. Most changes are claims, and ends by an
// attempt's own leader, of a few operations.
type groupKey struct {
	kind         kind
	from, to     storedToken // without owners
	due, expires pgtype.Int8
	tainted      bool
	input        bool // a create that stores the input for a worker
	operation    string
	priority     int8
}

const (
	// maxGroups limits the bulk statements of one round trip. Further changes are
	// made one by one.
	maxGroups = 8
	// minGroup is the smallest group for which a bulk statement pays.
	minGroup = 3
)

// groupKeyOf returns the key of a change, and false if there is no bulk statement
// for it.
func groupKeyOf(c *store.Change) (groupKey, bool) {
	to := &c.To
	s := groupKey{kind: kindOf(c), from: stored(c.If), to: stored(to.Token), tainted: to.Tainted}
	s.from.owner, s.to.owner = 0, 0
	s.due, s.expires = times(to)
	switch s.kind {
	case create:
		s.operation, s.priority, s.input = to.Operation, to.Priority, to.Input != nil
		return s, to.Outcome == nil
	case move:
		return s, to.Input == nil && to.Outcome != nil && c.If.Owner == to.Owner && !c.IfDue
	case beat, kinds:
	}
	return s, false
}

// bulkGroup has the changes of one groupKey.
type bulkGroup struct {
	groupKey

	items []*swapItem
}

// groupChanges divides changes into groups, and the others.
func groupChanges(items []swapItem) (groups []bulkGroup, rest []*swapItem) {
	for i := range items {
		it := &items[i]
		s, ok := groupKeyOf(it.Change)
		if !ok || !addToGroup(&groups, s, it) {
			rest = append(rest, it)
		}
	}
	kept := groups[:0]
	for _, g := range groups {
		if len(g.items) <= minGroup {
			rest = append(rest, g.items...)
			continue
		}
		kept = append(kept, g)
	}
	return kept, rest
}

// addToGroup adds a change to its group, if there is room.
func addToGroup(groups *[]bulkGroup, s groupKey, it *swapItem) bool {
	for i := range *groups {
		if g := &(*groups)[i]; g.groupKey == s {
			g.items = append(g.items, it)
			return true
		}
	}
	if len(*groups) == maxGroups {
		return false
	}
	*groups = append(*groups, bulkGroup{groupKey: s, items: append(make([]*swapItem, 0, 64), it)})
	return true
}

// write writes the parameters of the group's statement: arrays for values that
// differ, and single values for the others.
func (g *bulkGroup) write(r *encoder) {
	r.ids(g.items)
	r.owners(g.items)
	if g.kind == create {
		r.texts(g.items, func(of *store.Record) string { return of.Scope })
		r.texts(g.items, func(of *store.Record) string { return of.Key })
		r.datas(g.items, func(of *store.Record) []byte { return of.Fingerprint })
	} else {
		r.datas(g.items, func(of *store.Record) []byte { return of.Outcome })
		r.int16(g.from.state)
		r.int32(g.from.attempt)
	}
	r.int16(g.to.state)
	r.int32(g.to.attempt)
	r.maybe(g.due)
	r.maybe(g.expires)
	r.bool(g.tainted)
	if g.kind == create {
		r.text(g.operation)
		r.int16(int16(g.priority))
	}
	if g.input {
		r.datas(g.items, func(of *store.Record) []byte { return of.Input })
	}
}

// text returns the group's statement.
func (g *bulkGroup) text(t *tables) bulkText {
	if g.input {
		return t.queue
	}
	return t.alike[g.kind]
}

// bulkText is a statement that makes many changes, and one that also returns the
// IDs of the changes that it has made.
type bulkText struct{ text, applied string }

// queueBulk queues a statement that makes all of the changes. It does not ask which
// of them were made, because that costs time for each: if the count is too low, the
// current records are read. A worker may claim a created Pending record before
// that; then the other statement is used.
func queueBulk(b *pgx.Batch, m bulkText, args []any, items []*swapItem) {
	if anyPending(items) {
		queueBulkReturning(b, m.applied, args, items)
		return
	}
	b.Queue(m.text, args...).Exec(func(tag pgconn.CommandTag) error {
		markAllApplied(items, tag)
		return nil
	})
}

// anyPending reports whether a worker could claim one of the records before it is
// read.
func anyPending(items []*swapItem) bool {
	return slices.ContainsFunc(items, func(it *swapItem) bool { return it.To.State == store.Pending })
}

// markAllApplied marks all changes if all were made; otherwise it is not known
// which ones were.
func markAllApplied(items []*swapItem, tag pgconn.CommandTag) {
	all := tag.RowsAffected() == int64(len(items))
	for _, it := range items {
		it.made = all
	}
}

// markApplied marks the changes that were made.
func markApplied(items []*swapItem, made map[store.ID]bool) {
	for _, it := range items {
		it.made = made[it.To.ID]
	}
}

// queueBulkReturning is queueBulk with the statement that returns the IDs.
func queueBulkReturning(b *pgx.Batch, text string, args []any, items []*swapItem) {
	made := make(map[store.ID]bool, len(items))
	read := eachID(func(id store.ID) { made[id] = true })
	b.Queue(text, args...).Query(func(rows pgx.Rows) error {
		err := read(rows)
		markApplied(items, made)
		return err
	})
}
