package contest

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// Caller is a goroutine that calls an operation again and again, each time after
// the last call has returned. No other goroutine uses its fields.
type Caller struct {
	// N is the caller's number, from zero.
	N int
	// Rand is a caller's source of random numbers. A draw costs every side the same
	// few nanoseconds.
	Rand *rand.Rand

	took []time.Duration // duration of each operation that ended during the measurement
}

func newCallers(n int) []*Caller {
	callers := make([]*Caller, n)
	for i := range callers {
		callers[i] = &Caller{N: i, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	}
	return callers
}

// Key draws a random UUID, as text.
func (c *Caller) Key() string {
	var id [16]byte
	c.fill(id[:8])
	c.fill(id[8:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	var text [36]byte
	for i, at := range [5][3]int{{0, 0, 4}, {9, 4, 6}, {14, 6, 8}, {19, 8, 10}, {24, 10, 16}} {
		hex.Encode(text[at[0]:], id[at[1]:at[2]])
		if i > 0 {
			text[at[0]-1] = '-'
		}
	}
	return string(text[:])
}

func (c *Caller) fill(b []byte) {
	n := c.Rand.Uint64()
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}
