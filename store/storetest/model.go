package storetest

import (
	"cmp"
	"slices"

	"github.com/semelgo/semel/store"
)

// model is the contract of Swap and Purge for one caller: changes one after
// another, and times that have passed or have not.
type model map[store.ID]modelRecord

type modelRecord struct {
	store.Record

	due, expired bool
}

// isDue reports whether a list of due records contains the record.
func (s modelRecord) isDue() bool {
	return s.due && (s.State == store.Pending || s.State == store.InProgress)
}

// swap answers one change as a store must, and reports whether it wrote. The answer
// to an applied change has no Record.
func (m model) swap(c store.Change) (answer store.SwapResult, wrote bool) {
	current, there := m[c.To.ID]
	switch {
	case current.Token != c.If && current.Token == c.To.Token:
		return store.SwapResult{Token: c.To.Token}, false
	case current.Token != c.If || c.IfDue && !current.due:
		if !there {
			return store.SwapResult{}, false
		}
		if current.Token == c.To.Token {
			return store.SwapResult{Token: c.To.Token}, false
		}
		return store.SwapResult{Token: current.Token, Record: &current.Record}, false
	}
	m[c.To.ID] = current.after(c, there)
	return store.SwapResult{Token: c.To.Token}, true
}

// after returns the record after the change c.
func (s modelRecord) after(c store.Change, there bool) modelRecord {
	s.due = c.To.Due <= 0
	s.expired = c.To.Expire < 0 && !c.To.State.Unfinished()
	switch {
	case !there:
		s.Record = c.To
	case c.If != c.To.Token:
		s.Token, s.Tainted = c.To.Token, c.To.Tainted
		if c.To.Input != nil {
			s.Input = c.To.Input
		}
		if c.To.Outcome != nil {
			s.Outcome = c.To.Outcome
		}
	}
	s.Due, s.Expire = c.To.Due, c.To.Expire
	return s
}

// waiting returns the records that Dequeue may return, in order. Records that
// became due at about the same time may come in any order.
func (m model) waiting() []modelRecord {
	var all []modelRecord
	for _, s := range m {
		if s.due && s.State == store.Pending {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b modelRecord) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due), compareIDs(a.ID, b.ID))
	})
	return all
}

func (m model) purge() {
	for id, s := range m {
		if s.expired {
			delete(m, id)
		}
	}
}

// ids returns the IDs of the records that which selects, sorted.
func (m model) ids(which func(modelRecord) bool) []store.ID {
	var ids []store.ID
	for id, s := range m {
		if which(s) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// counts are what Counts must return, without Oldest.
func (m model) counts(operation string) []store.Count {
	var counts []store.Count
	for _, state := range store.States() {
		c := store.Count{Operation: operation, State: state}
		for _, s := range m {
			if s.State != state {
				continue
			}
			c.Records++
			if s.isDue() {
				c.Overdue++
			}
			if s.expired {
				c.Purgeable++
			}
			if (state == store.InDoubt || state == store.Failed) && len(s.Outcome) > 0 && s.Outcome[0] == store.DeadLetterMark {
				c.DeadLetters++
			}
		}
		if c.Records > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}
