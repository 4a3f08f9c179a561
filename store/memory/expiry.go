package memory

import (
	"slices"
	"time"
)

// expiry is when the row at a place expires, unless it has changed since.
type expiry struct {
	at    time.Duration
	place uint32
}

// expiries orders rows by their expiry, so that a full store finds expired rows
// without reading every record. Most rows have the same retention and so expire in
// the order in which they were written: these are in a line. Rows that expire
// before the last of the line are in a heap, which is a little slower. There are no
// pointers in it, which saves the garbage collector work.
type expiries struct {
	line   []*expiryBlock // in order; the first one begins at head
	head   int            // number of removed entries in the first block
	size   int            // number of entries in the line
	last   time.Duration  // last expiry in the line
	others expiryHeap     // earlier than the last of the line when they were added
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

// first returns the earliest expiry. There must be one.
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

// expiryHeap is a heap with the earliest expiry on top.
type expiryHeap []expiry

func (q *expiryHeap) add(e expiry) {
	i := len(*q)
	if i == cap(*q) {
		*q = slices.Grow(*q, max(i, minStale)) // doubled: append would copy more often
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
