package storetest

import (
	"strconv"
	"time"

	"github.com/semelgo/semel/store"
)

// batch returns one to three changes of different records.
func (h *randomHistory) batch() []store.Change {
	changes := make([]store.Change, 0, 3)
	for _, key := range h.Perm(records)[:1+h.IntN(3)] {
		changes = append(changes, h.change(h.model, key))
	}
	return changes
}

func (h *randomHistory) record(key int) store.Record {
	return identity(h.operation, "scope", strconv.Itoa(key))
}

// change returns a new change of a current record of m, or an earlier change.
func (h *randomHistory) change(m model, key int) store.Change {
	rec := h.record(key)
	if old := h.earlier(rec.ID); len(old) > 0 && h.IntN(4) == 0 {
		return old[h.IntN(len(old))]
	}
	c := store.Change{If: h.from(m, rec.ID), To: rec}
	if c.If.State == store.Pending || c.If.State == store.InProgress {
		c.IfDue = h.IntN(2) == 0
	}
	c.To.Priority = int8(h.IntN(3) - 1)
	c.To.Due = []time.Duration{0, -time.Minute, farAhead}[h.IntN(3)]
	c.To.Expire = []time.Duration{0, -time.Minute, farAhead}[h.IntN(3)]
	if c.If.State == store.InProgress && h.IntN(4) == 0 {
		c.To.Token = c.If // a heartbeat
		return c
	}
	c.To.Token = store.Token{
		State: store.States()[h.IntN(5)], Attempt: c.If.Attempt + h.Uint32N(2), Owner: h.Uint64(),
	}
	c.To.Tainted = h.IntN(2) == 0
	c.To.Input, c.To.Outcome = h.content(), h.content()
	return c
}

// from returns a token that is current, was current, or never existed.
func (h *randomHistory) from(m model, id store.ID) store.Token {
	old := h.earlier(id)
	switch {
	case h.IntN(8) == 0:
		return store.Token{}
	case h.IntN(8) == 0 && len(old) > 0:
		return old[h.IntN(len(old))].To.Token
	default:
		return m[id].Token
	}
}

func (h *randomHistory) earlier(id store.ID) []store.Change {
	var of []store.Change
	for _, c := range h.sent {
		if c.To.ID == id {
			of = append(of, c)
		}
	}
	return of
}

func (h *randomHistory) content() []byte {
	return [][]byte{nil, {}, []byte("some"), []byte("other")}[h.IntN(4)]
}
