package memory

import (
	"iter"

	"github.com/semelgo/semel/store"
)

// rows has the committed rows. They are in blocks and are found by their places, so
// that the garbage collector has few pointers to follow: none in the index, one for
// each block, and one for each outcome. The place of a removed row is used again,
// and its memory is not freed.
type rows struct {
	places index
	blocks []*rowBlock
	free   []uint32 // empty places below len(blocks)*blockRows
}

const blockRows = 32

type rowBlock [blockRows]row

func (t *rows) len() int { return t.places.size }

func (t *rows) at(place uint32) *row { return &t.blocks[place/blockRows][place%blockRows] }

// of returns the row of id, or nil. It stays at its place until it is removed.
func (t *rows) of(id store.ID) *row {
	p, slot := t.find(id)
	if p == nil {
		return nil
	}
	return t.at(p.slots[slot].place - 1)
}

// find returns the index entry of id. The part is nil if there is none.
func (t *rows) find(id store.ID) (p *indexPart, slot int) {
	p, tag := t.places.of(&id)
	if p.used == 0 {
		return nil, 0
	}
	for slot = p.slot(tag); p.slots[slot].place != 0; slot = p.after(slot) {
		if s := &p.slots[slot]; s.tag == tag && t.at(s.place-1).id == id {
			return p, slot
		}
	}
	return nil, 0
}

// add returns an empty row for id, which must have none.
func (t *rows) add(id store.ID) *row {
	if len(t.free) == 0 {
		t.grow()
	}
	last := len(t.free) - 1
	place := t.free[last]
	t.free = t.free[:last]
	t.places.add(&id, place)
	r := t.at(place)
	r.place = place
	return r
}

func (t *rows) grow() {
	first := uint32(len(t.blocks) * blockRows)
	t.blocks = append(t.blocks, new(rowBlock))
	for i := range uint32(blockRows) {
		t.free = append(t.free, first+blockRows-1-i)
	}
}

// remove removes the row of id, which must have one.
func (t *rows) remove(id store.ID) {
	p, slot := t.find(id)
	place := p.slots[slot].place - 1
	p.empty(slot)
	t.places.size--
	*t.at(place) = row{}
	t.free = append(t.free, place)
}

// all iterates over all rows, in no order.
func (t *rows) all() iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for _, b := range t.blocks {
			for i := range b {
				if b[i].token.State != store.Absent && !yield(&b[i]) {
					return
				}
			}
		}
	}
}
