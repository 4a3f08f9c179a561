package memory

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/semelgo/semel/store"
)

// index finds the places of rows by ID. The IDs are in the rows, which the caller
// reads next, and are digests, so the index stores only a part of each. It consists
// of parts that grow one by one, so that no caller waits for the whole index to
// grow.
type index struct {
	seed  [2]uint64 // random, so that callers cannot choose keys that collide
	parts [indexParts]indexPart
	size  int
}

const indexParts = 256

// indexPart is a hash table with linear probing. At least a quarter of the slots is
// empty.
type indexPart struct {
	slots []indexSlot
	used  int
}

// minSlots is the smallest number of slots. All numbers of slots are powers of two.
const minSlots = 8

type indexSlot struct {
	tag   uint32 // of the ID; its last bits are the slot
	place uint32 // counted from 1; zero: empty
}

func newIndex() index { return index{seed: [2]uint64{rand.Uint64(), rand.Uint64()}} }

// of returns the part of an ID, and its tag in it.
func (x *index) of(id *store.ID) (p *indexPart, tag uint32) {
	high, low := bits.Mul64(binary.LittleEndian.Uint64(id[:8])^x.seed[0], binary.LittleEndian.Uint64(id[8:])^x.seed[1])
	hash := high ^ low
	return &x.parts[hash%indexParts], uint32(hash >> 32)
}

// slot returns the first slot of an entry.
func (p *indexPart) slot(tag uint32) int { return int(tag) & (len(p.slots) - 1) }

func (p *indexPart) after(slot int) int { return (slot + 1) & (len(p.slots) - 1) }

// add adds the place of an ID that has none.
func (x *index) add(id *store.ID, place uint32) {
	p, tag := x.of(id)
	if 4*(p.used+1) > 3*len(p.slots) {
		p.grow()
	}
	p.put(indexSlot{tag, place + 1})
	p.used++
	x.size++
}

func (p *indexPart) put(s indexSlot) {
	slot := p.slot(s.tag)
	for p.slots[slot].place != 0 {
		slot = p.after(slot)
	}
	p.slots[slot] = s
}

func (p *indexPart) grow() {
	before := p.slots
	p.slots = make([]indexSlot, max(minSlots, 2*len(before)))
	for _, s := range before {
		if s.place != 0 {
			p.put(s)
		}
	}
}

// empty empties a slot, and moves entries back that were put after it because it
// was taken.
func (p *indexPart) empty(slot int) {
	for next := p.after(slot); p.slots[next].place != 0; next = p.after(next) {
		own := p.slot(p.slots[next].tag)
		if (next-own)&(len(p.slots)-1) >= (next-slot)&(len(p.slots)-1) {
			p.slots[slot], slot = p.slots[next], next
		}
	}
	p.slots[slot] = indexSlot{}
	p.used--
}
