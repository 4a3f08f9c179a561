package semeltest

import (
	"slices"

	"github.com/semelgo/semel/store"
)

// model is what the contract says of Swap and Purge, with nothing in the way:
// one record after the other, and times that have come or have not.
type model map[store.ID]modelled

type modelled struct {
	store.Record

	due, expired bool
}

// swap answers one change as a store must. When the change is in force, what it
// returns has no Record.
func (m model) swap(c store.Change) store.Standing {
	stands, there := m[c.To.ID]
	switch {
	case stands.Token != c.If && stands.Token == c.To.Token:
		return store.Standing{Token: c.To.Token}
	case stands.Token != c.If || c.IfDue && !stands.due:
		if !there {
			return store.Standing{}
		}
		if stands.Token == c.To.Token {
			return store.Standing{Token: c.To.Token}
		}
		return store.Standing{Token: stands.Token, Record: &stands.Record}
	}
	m[c.To.ID] = stands.after(c, there)
	return store.Standing{Token: c.To.Token}
}

// after is what stands once c is made of s.
func (s modelled) after(c store.Change, there bool) modelled {
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
	return s
}

func (m model) purge() {
	for id, s := range m {
		if s.expired {
			delete(m, id)
		}
	}
}

// ids lists the records that which chooses, in the order of their IDs.
func (m model) ids(which func(modelled) bool) []store.ID {
	var ids []store.ID
	for id, s := range m {
		if which(s) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}
