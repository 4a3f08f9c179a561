package memory

import (
	"slices"
	"time"
)

// expiry is when the row at a place expires, if it has not changed since.
type expiry struct {
	at    time.Duration
	place uint32
}

// expiries are what expires, so that a full store finds room without looking at every
// record. Most come in the order in which they go, because most records are kept for
// the same time: they stand in a line. While one that is kept for longer stands in it, the
// others are in a heap, which takes a little longer. There is no pointer to what is in it,
// so that the collector need not look at it.
type expiries struct {
	line   []*expiryBlock // in order; the first of it begins at head
	head   int            // of the first block, what is gone
	size   int            // of the line
	last   time.Duration  // that was added to the line
	others expiryHeap     // which came too late for the line
}

const blockExpiries = 256

type expiryBlock [blockExpiries]expiry

func (x *expiries) len() int { return x.size + len(x.others) }

func (x *expiries) add(e expiry) {
	if x.size > 0 && e.at < x.last {
		x.others.add(e)
		return
	}
	end := x.head + x.size
	if end == len(x.line)*blockExpiries {
		x.line = append(x.line, new(expiryBlock))
	}
	x.line[end/blockExpiries][end%blockExpiries] = e
	x.last = e.at
	x.size++
}

// first is what expires first; there is one.
func (x *expiries) first() expiry {
	switch {
	case x.size == 0:
		return x.others[0]
	case len(x.others) > 0 && x.others[0].at < x.line[0][x.head].at:
		return x.others[0]
	default:
		return x.line[0][x.head]
	}
}

// pop removes and returns the first.
func (x *expiries) pop() expiry {
	first := x.first()
	if len(x.others) > 0 && first == x.others[0] {
		return x.others.pop()
	}
	x.size--
	if x.head++; x.head == blockExpiries {
		x.line[0] = nil
		x.line, x.head = x.line[1:], 0
	}
	return first
}

// expiryHeap has the first of them on top.
type expiryHeap []expiry

func (q *expiryHeap) add(e expiry) {
	i := len(*q)
	if i == cap(*q) {
		*q = slices.Grow(*q, max(i, minStale)) // doubled: append would copy it more often
	}
	*q = append(*q, e)
	for h := *q; i > 0; {
		up := (i - 1) / 2
		if h[up].at <= e.at {
			break
		}
		h[i], h[up] = h[up], e
		i = up
	}
}

func (q *expiryHeap) pop() expiry {
	h := *q
	first, last := h[0], len(h)-1
	e := h[last]
	h = h[:last]
	*q = h
	for i := 0; last > 0; {
		down := 2*i + 1
		if down+1 < last && h[down+1].at < h[down].at {
			down++
		}
		if down >= last || e.at <= h[down].at {
			h[i] = e
			break
		}
		h[i] = h[down]
		i = down
	}
	return first
}
