package lane

import (
	"slices"
	"time"
)

// Batch is what is asked together.
type Batch[Q, A any] struct {
	// Questions are in the order of their keys, each key once; and after them those that
	// have joined, in the order they came.
	Questions []Q

	items []*Item[Q, A] // in the same order; of a shared key several
	of    []int         // which question each item has; nil: its own
	until time.Time     // when the first of them came and may not wait any more
	took  time.Duration // to ask for them; zero: it is not known

	// expected is how large the batch may become by others who join it; zero: nobody may.
	expected int
}

// Take makes a batch of what waits. There may be nothing that can go now: then the
// asking that Join or Settle has called for is over, and Take returns nil.
func (l *Lane[K, Q, A]) Take() *Batch[Q, A] {
	l.mu.Lock()
	items := l.gather(l.config.MaxBatch, l.kind())
	if len(items) == 0 {
		l.running--
		l.mu.Unlock()
		return nil
	}
	room := l.roomy()
	l.mu.Unlock()
	return l.batch(items, room)
}

// roomy returns room for questions, as much as there happens to be.
func (l *Lane[K, Q, A]) roomy() []Q {
	last := len(l.rooms) - 1
	if last < 0 {
		return nil
	}
	room := l.rooms[last]
	l.rooms = l.rooms[:last]
	return room
}

// gather takes out of those who wait whoever is of the kind and may go, in the order they
// came, and no more than most.
func (l *Lane[K, Q, A]) gather(most, kind int) []*Item[Q, A] {
	items := make([]*Item[Q, A], 0, min(len(l.waiting), most))
	rest := l.waiting[:0]
	for _, it := range l.waiting {
		other := kind != anyKind && l.config.Kind(&it.question) != kind
		if len(items) == most || other || !l.fly(it) {
			it.left = it.left || other
			rest = append(rest, it)
			continue
		}
		it.taken = true
		items = append(items, it)
	}
	clear(l.waiting[len(rest):])
	l.waiting = rest
	return items
}

const (
	anyKind = -1
	// fewMixed go together whatever they are: to be more is worth more to them than to be
	// of one kind. Where asking takes long, so do fewMixedFar: who is left behind waits for
	// a whole asking more.
	fewMixed    = 16
	fewMixedFar = 64
	// ofOneKind is the share of those who wait that is enough for a batch of their own: one
	// in so many.
	ofOneKind = 3
)

// kind is that of the next batch: of whoever was left behind and has waited longest, or
// has waited longest, unless too few are like that. So who is left behind goes with the
// next one, or as soon as no other of its key is under way; and those who were answered
// together, who come again together, stay of one kind.
func (l *Lane[K, Q, A]) kind() int {
	few := fewMixed
	if l.pace.isFar() {
		few = fewMixedFar
	}
	if l.config.Kind == nil || len(l.waiting) <= few {
		return anyKind
	}
	longest := l.longest()
	if longest == nil {
		return anyKind
	}
	kind, same := l.config.Kind(&longest.question), 0
	for _, it := range l.waiting {
		if l.config.Kind(&it.question) == kind {
			same++
		}
	}
	if same*ofOneKind < len(l.waiting) {
		return anyKind
	}
	return kind
}

// longest is who has waited longest of those whose keys are not under way: of those who
// were left behind, if there are any.
func (l *Lane[K, Q, A]) longest() (first *Item[Q, A]) {
	for _, it := range l.waiting {
		switch {
		case first != nil && !it.left || l.flies(it):
		case it.left:
			return it
		default:
			first = it
		}
	}
	return first
}

// flies says that the key of it is in a batch that is under way, where it may be in one only.
func (l *Lane[K, Q, A]) flies(it *Item[Q, A]) bool {
	if l.config.Shared {
		return false
	}
	_, flies := l.flying[l.config.Key(&it.question)]
	return flies
}

// fly keeps the key of it to one batch, and reports whether it may be that.
func (l *Lane[K, Q, A]) fly(it *Item[Q, A]) bool {
	if l.config.Shared {
		return true
	}
	k := l.config.Key(&it.question)
	if _, flies := l.flying[k]; flies {
		return false
	}
	l.flying[k] = struct{}{}
	return true
}

// batch puts the items in order, and shares what may be shared. The questions go into
// room, as far as it reaches.
func (l *Lane[K, Q, A]) batch(items []*Item[Q, A], room []Q) *Batch[Q, A] {
	until := items[0].until
	slices.SortStableFunc(items, func(a, b *Item[Q, A]) int {
		return l.config.Compare(l.config.Key(&a.question), l.config.Key(&b.question))
	})
	b := &Batch[Q, A]{Questions: slices.Grow(room, len(items)), items: items, until: until}
	if l.config.Shared {
		b.of = make([]int, len(items))
	}
	for i, it := range items {
		same := l.config.Shared && i > 0 && l.config.Key(&items[i-1].question) == l.config.Key(&it.question)
		if !same {
			b.Questions = append(b.Questions, it.question)
		}
		if l.config.Shared {
			b.of[i] = len(b.Questions) - 1
		}
	}
	return b
}

// Settle tells the items of a batch what came of it, and reports whether Take is to
// be called again: because others wait, or because it was not one caller alone, and
// those who were answered are about to come again. Otherwise the asking is over.
func (l *Lane[K, Q, A]) Settle(b *Batch[Q, A], answers []A, err error) (more bool) {
	for i, it := range b.items {
		if it.err = err; err == nil {
			it.answer = answers[b.question(i)]
		}
	}
	l.mu.Lock()
	if !l.config.Shared {
		for i := range b.Questions {
			delete(l.flying, l.config.Key(&b.Questions[i]))
		}
	}
	if err == nil {
		// Without an answer somebody may still be reading them.
		clear(b.Questions)
		l.rooms, b.Questions = append(l.rooms, b.Questions[:0]), nil
		l.pace.add(len(b.items), b.took)
	}
	l.out(len(b.items))
	if more = len(l.waiting) > 0 || len(b.items) > 1; !more {
		l.running--
	}
	l.mu.Unlock()
	for _, it := range b.items {
		it.done <- struct{}{}
	}
	return more
}

func (b *Batch[Q, A]) question(item int) int {
	if b.of == nil {
		return item
	}
	return b.of[item]
}
