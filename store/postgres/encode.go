package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// raw are the parameters of one statement as the server reads them: each in its binary
// format, behind its length. They are written one behind the other.
type encoder struct {
	bytes []byte
	n     int // parameters
}

const (
	sizeBytes = 4
	nullSize  = ^uint32(0) // stands where the length would
)

// put adds a parameter that write appends.
func (r *encoder) put(write func(b []byte) []byte) {
	r.bytes = sized(r.bytes, func(b []byte) ([]byte, bool) { return write(b), false })
	r.n++
}

// sized appends what write appends behind its length, or that it is null.
func sized(b []byte, write func(b []byte) (_ []byte, null bool)) []byte {
	at := len(b)
	b, null := write(append(b, 0, 0, 0, 0))
	size := uint32(len(b) - at - sizeBytes)
	if null {
		size = nullSize
	}
	binary.BigEndian.PutUint32(b[at:], size)
	return b
}

func (r *encoder) null() { r.bytes, r.n = binary.BigEndian.AppendUint32(r.bytes, nullSize), r.n+1 }

func (r *encoder) id(id store.ID) { r.put(func(b []byte) []byte { return append(b, id[:]...) }) }

func (r *encoder) int16(n int16) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) })
}

func (r *encoder) int32(n int32) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) })
}

func (r *encoder) int64(n int64) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) })
}

func (r *encoder) maybe(n pgtype.Int8) {
	if !n.Valid {
		r.null()
		return
	}
	r.int64(n.Int64)
}

func (r *encoder) bool(is bool) {
	r.put(func(b []byte) []byte {
		if is {
			return append(b, 1)
		}
		return append(b, 0)
	})
}

// change are the parameters of the statement for one change.
func (r *encoder) change(c *store.Change) {
	to, k := &c.To, kindOf(c)
	due, expires := times(to)
	r.id(to.ID)
	if k == create {
		r.token(to.Token)
		r.maybe(due)
		r.maybe(expires)
		r.bool(to.Tainted)
		r.text(to.Operation)
		r.text(to.Scope)
		r.text(to.Key)
		r.data(to.Fingerprint)
		r.int16(int16(to.Priority))
		r.data(to.Input)
		r.data(to.Outcome)
		return
	}
	r.token(c.If)
	r.bool(c.IfDue)
	if k == move {
		r.token(to.Token)
	}
	r.maybe(due)
	r.maybe(expires)
	if k == move {
		r.bool(to.Tainted)
		r.data(to.Input)
		r.data(to.Outcome)
	}
}

// finish are the parameters of the statement for a change that isFinish.
func (r *encoder) finish(c *store.Change) {
	_, expires := times(&c.To)
	r.id(c.To.ID)
	r.token(c.If)
	r.int16(stored(c.To.Token).state)
	r.maybe(expires)
	r.bool(c.To.Tainted)
	r.data(c.To.Outcome)
}

// outright are the parameters of the statement for a change that isOutright.
func (r *encoder) outright(c *store.Change) {
	to := &c.To
	_, expires := times(to)
	r.id(to.ID)
	r.token(to.Token)
	r.interval(expires)
	r.text(to.Operation)
	r.text(to.Scope)
	r.text(to.Key)
	r.data(to.Fingerprint)
	r.int16(int16(to.Priority))
	r.data(to.Outcome)
}

// interval is one of microseconds.
func (r *encoder) interval(n pgtype.Int8) {
	if !n.Valid {
		r.null()
		return
	}
	const days, months = 0, 0
	r.put(func(b []byte) []byte {
		b = binary.BigEndian.AppendUint64(b, uint64(n.Int64))
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, days), months)
	})
}

func (r *encoder) text(s string) { r.put(func(b []byte) []byte { return append(b, s...) }) }

// data is null if it is nil.
func (r *encoder) data(d []byte) {
	if d == nil {
		r.null()
		return
	}
	r.put(func(b []byte) []byte { return append(b, d...) })
}

func (r *encoder) token(t store.Token) {
	s := stored(t)
	r.int16(s.state)
	r.int32(s.attempt)
	r.int64(s.owner)
}

// arrayOf appends what stands before the elements, of which none is null.
func arrayOf(b []byte, of uint32, n int) []byte {
	const dimensions, nulls, first = 1, 0, 1
	for _, n := range [...]uint32{dimensions, nulls, of, uint32(n), first} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// array adds one parameter of which every item has an element, which write appends,
// or leaves to be null.
func (r *encoder) array(of uint32, items []*swapItem, write func(b []byte, it *swapItem) (_ []byte, null bool)) {
	r.put(func(b []byte) []byte {
		nulls := len(b) + 4
		b = arrayOf(b, of, len(items))
		for _, it := range items {
			b = sized(b, func(b []byte) ([]byte, bool) {
				b, null := write(b, it)
				if null {
					binary.BigEndian.PutUint32(b[nulls:], 1)
				}
				return b, null
			})
		}
		return b
	})
}

// listed adds an array of IDs.
func (r *encoder) listed(ids []store.ID) {
	r.put(func(b []byte) []byte {
		b = arrayOf(b, pgtype.UUIDOID, len(ids))
		for _, id := range ids {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(id))), id[:]...)
		}
		return b
	})
}

func (r *encoder) ids(items []*swapItem) {
	r.array(pgtype.UUIDOID, items, func(b []byte, it *swapItem) ([]byte, bool) { return append(b, it.To.ID[:]...), false })
}

func (r *encoder) owners(items []*swapItem) {
	r.array(pgtype.Int8OID, items, func(b []byte, it *swapItem) ([]byte, bool) {
		return binary.BigEndian.AppendUint64(b, it.To.Owner), false
	})
}

func (r *encoder) texts(items []*swapItem, of func(*store.Record) string) {
	r.array(pgtype.ByteaOID, items, func(b []byte, it *swapItem) ([]byte, bool) { return append(b, of(&it.To)...), false })
}

func (r *encoder) datas(items []*swapItem, of func(*store.Record) []byte) {
	r.array(pgtype.ByteaOID, items, func(b []byte, it *swapItem) ([]byte, bool) {
		d := of(&it.To)
		return append(b, d...), d == nil
	})
}
