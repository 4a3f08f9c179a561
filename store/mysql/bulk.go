package mysql

import (
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

// bulkMax is the largest number of records that one UPDATE changes. Its CASE
// expressions compare each record's ID with those before it.
const bulkMax = 128

// shape is what the changes of one UPDATE have in common. Only IDs, owners, inputs and
// outcomes differ.
type shape struct {
	from, to       store.Token // without their owners
	due, expire    time.Duration
	ifDue, tainted bool
	sameOwner      bool
	input, outcome bool // false: the current value is kept
}

func shapeOf(c *store.Change) shape {
	s := shape{
		from: c.If, to: c.To.Token, due: c.To.Due, expire: c.To.Expire, ifDue: c.IfDue, tainted: c.To.Tainted,
		sameOwner: c.If.Owner == c.To.Owner, input: c.To.Input != nil, outcome: c.To.Outcome != nil,
	}
	s.from.Owner, s.to.Owner = 0, 0
	return s
}

// heartbeats reports whether the changes keep the records' tokens.
func (s *shape) heartbeats() bool { return s.from == s.to && s.sameOwner }

// byShape divides changes into the groups of one UPDATE each.
func byShape(changes []store.Change, some []int) [][]int {
	var groups [][]int
	last := make(map[shape]int) // the last group of a shape
	for _, i := range some {
		s := shapeOf(&changes[i])
		g, ok := last[s]
		if !ok || len(groups[g]) == bulkMax {
			g = len(groups)
			groups, last[s] = append(groups, nil), g
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// bulkUpdate returns the UPDATE of a group. A join with a table of the new values would
// be shorter, but MariaDB collects the rows of an UPDATE of two tables in a temporary
// table, which is on disk because of the outcomes, and costs as much as a hundred records.
func bulkUpdate(changes []store.Change, group []int) step {
	if len(group) == 1 {
		text, args := statement(&changes[group[0]])
		return step{text: text, args: args}
	}
	first := &changes[group[0]]
	s := shapeOf(first)
	b := &bulk{changes: changes, group: group}
	b.add(byID+`SET due = `+now+` + ?, expires = `+now+` + ?`, due(&first.To), expires(&first.To))
	if !s.heartbeats() {
		b.add(`, state = ?, attempt = ?, changed = `+now+`, tainted = ?`, uint64(s.to.State), s.to.Attempt, s.tainted)
		if !s.sameOwner {
			b.add(`, owner = `)
			b.addCase(func(c *store.Change) any { return c.To.Owner })
		}
		if s.input {
			b.add(`, input = `)
			b.addCase(func(c *store.Change) any { return c.To.Input })
		}
		if s.outcome {
			b.add(`, outcome = `)
			b.addCase(func(c *store.Change) any { return c.To.Outcome })
		}
	}
	b.add(` WHERE id IN ` + list(len(group)))
	for _, i := range group {
		b.args = append(b.args, changes[i].To.ID[:])
	}
	b.add(` AND state = ? AND attempt = ? AND (NOT ? OR coalesce(due, 0) <= `+now+`) AND owner = `, uint64(s.from.State), s.from.Attempt, s.ifDue)
	b.addCase(func(c *store.Change) any { return c.If.Owner })
	return step{text: b.text.String(), args: b.args}
}

// bulk builds the UPDATE of a group.
type bulk struct {
	changes []store.Change
	group   []int
	text    strings.Builder
	args    []any
}

func (b *bulk) add(text string, args ...any) {
	b.text.WriteString(text)
	b.args = append(b.args, args...)
}

// addCase adds the expression of a value that depends on the record.
func (b *bulk) addCase(value func(*store.Change) any) {
	b.text.WriteString(`CASE id`)
	for _, i := range b.group {
		b.add(` WHEN ? THEN ?`, b.changes[i].To.ID[:], value(&b.changes[i]))
	}
	b.text.WriteString(` END`)
}
