package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// shape is what changes have in common that are made by one statement, which then
// says it once: all but what differs from record to record. Most changes are
// claims, and ends of attempts by their own leaders, of few operations.
type shape struct {
	kind         kind
	from, to     storedToken // without owners
	due, expires pgtype.Int8
	tainted      bool
	input        bool // a create keeps what a worker is to run it with
	operation    string
	priority     int8
}

const (
	// mostShapes bounds the statements of one trip. What comes after them is made
	// as if it were like nothing else.
	mostShapes = 8
	// fewAlike are too few for a statement of their own kind.
	fewAlike = 3
)

// shapeOf tells the shape of a change; false if there is no statement for those
// like it.
func shapeOf(c *store.Change) (shape, bool) {
	to := &c.To
	s := shape{kind: kindOf(c), from: stored(c.If), to: stored(to.Token), tainted: to.Tainted}
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

// alike are changes of one shape.
type alike struct {
	shape

	items []*item
}

// sortOut divides changes into those that are alike, and the others.
func sortOut(items []item) (groups []alike, rest []*item) {
	for i := range items {
		it := &items[i]
		s, ok := shapeOf(it.Change)
		if !ok || !join(&groups, s, it) {
			rest = append(rest, it)
		}
	}
	kept := groups[:0]
	for _, g := range groups {
		if len(g.items) <= fewAlike {
			rest = append(rest, g.items...)
			continue
		}
		kept = append(kept, g)
	}
	return kept, rest
}

// join puts a change to those of its shape, if there is room for that.
func join(groups *[]alike, s shape, it *item) bool {
	for i := range *groups {
		if g := &(*groups)[i]; g.shape == s {
			g.items = append(g.items, it)
			return true
		}
	}
	if len(*groups) == mostShapes {
		return false
	}
	*groups = append(*groups, alike{shape: s, items: append(make([]*item, 0, 64), it)})
	return true
}

// write writes the parameters of the statement for the group: what differs as
// arrays, and what does not.
func (g *alike) write(r *raw) {
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

// text is the statement for the group.
func (g *alike) text(t *tables) manyText {
	if g.input {
		return t.queue
	}
	return t.alike[g.kind]
}

// manyText is a statement that makes many changes, and the same that tells which.
type manyText struct{ text, told string }

// queueAll queues a statement that makes all of the changes, unless something else
// stands. Which of them it has made is not asked for, because that costs something
// for each: if they are fewer than all, what stands is read. Only what waits may be
// claimed by anybody before that.
func queueAll(b *pgx.Batch, m manyText, args []any, items []*item) {
	if anyWaits(items) {
		queueTold(b, m.told, args, items)
		return
	}
	b.Queue(m.text, args...).Exec(func(tag pgconn.CommandTag) error {
		allMade(items, tag)
		return nil
	})
}

// anyWaits says that a worker could claim one of them before it is asked what stands.
func anyWaits(items []*item) bool {
	return slices.ContainsFunc(items, func(it *item) bool { return it.To.State == store.Pending })
}

// allMade notes whether all were made; if not, it is not known which.
func allMade(items []*item, tag pgconn.CommandTag) {
	all := tag.RowsAffected() == int64(len(items))
	for _, it := range items {
		it.made = all
	}
}

// someMade notes which were made.
func someMade(items []*item, made map[store.ID]bool) {
	for _, it := range items {
		it.made = made[it.To.ID]
	}
}

// queueTold is queueAll by a statement that tells which changes it has made.
func queueTold(b *pgx.Batch, text string, args []any, items []*item) {
	made := make(map[store.ID]bool, len(items))
	read := eachID(func(id store.ID) { made[id] = true })
	b.Queue(text, args...).Query(func(rows pgx.Rows) error {
		err := read(rows)
		someMade(items, made)
		return err
	})
}
