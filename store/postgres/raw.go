package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// raw are the parameters of one statement as PostgreSQL reads them, in its binary
// formats. They are written one behind the other, and used again for the next one.
type raw struct {
	bytes  []byte
	parts  []part
	values [][]byte
}

// part is where one parameter is.
type part struct {
	from, to int
	null     bool
}

func (r *raw) reset() { r.bytes, r.parts, r.values = r.bytes[:0], r.parts[:0], r.values[:0] }

// all are the parameters. They are good until the next reset.
func (r *raw) all() [][]byte {
	for _, p := range r.parts {
		if p.null {
			r.values = append(r.values, nil)
			continue
		}
		r.values = append(r.values, r.bytes[p.from:p.to:p.to])
	}
	return r.values
}

// put adds a parameter that write appends.
func (r *raw) put(write func(b []byte) []byte) {
	from := len(r.bytes)
	r.bytes = write(r.bytes)
	r.parts = append(r.parts, part{from: from, to: len(r.bytes)})
}

func (r *raw) null() { r.parts = append(r.parts, part{null: true}) }

func (r *raw) id(id store.ID) { r.put(func(b []byte) []byte { return append(b, id[:]...) }) }

func (r *raw) int16(n int16) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) })
}

func (r *raw) int32(n int32) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) })
}

func (r *raw) int64(n int64) {
	r.put(func(b []byte) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) })
}

func (r *raw) maybe(n pgtype.Int8) {
	if !n.Valid {
		r.null()
		return
	}
	r.int64(n.Int64)
}

func (r *raw) bool(is bool) {
	r.put(func(b []byte) []byte {
		if is {
			return append(b, 1)
		}
		return append(b, 0)
	})
}

// change are the parameters of the statement for one change.
func (r *raw) change(c *store.Change) {
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

func (r *raw) text(s string) { r.put(func(b []byte) []byte { return append(b, s...) }) }

// data is null if it is nil.
func (r *raw) data(d []byte) {
	if d == nil {
		r.null()
		return
	}
	r.put(func(b []byte) []byte { return append(b, d...) })
}

func (r *raw) token(t store.Token) {
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
func (r *raw) array(of uint32, items []*item, write func(b []byte, it *item) (_ []byte, null bool)) {
	r.put(func(b []byte) []byte {
		nulls := len(b) + 4
		b = arrayOf(b, of, len(items))
		for _, it := range items {
			size := len(b)
			var null bool
			b, null = write(append(b, 0, 0, 0, 0), it)
			n := uint32(len(b) - size - 4)
			if null {
				n = ^uint32(0)
				binary.BigEndian.PutUint32(b[nulls:], 1)
			}
			binary.BigEndian.PutUint32(b[size:], n)
		}
		return b
	})
}

// listed adds an array of IDs.
func (r *raw) listed(ids []store.ID) {
	r.put(func(b []byte) []byte {
		b = arrayOf(b, pgtype.UUIDOID, len(ids))
		for _, id := range ids {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(id))), id[:]...)
		}
		return b
	})
}

func (r *raw) ids(items []*item) {
	r.array(pgtype.UUIDOID, items, func(b []byte, it *item) ([]byte, bool) { return append(b, it.To.ID[:]...), false })
}

func (r *raw) owners(items []*item) {
	r.array(pgtype.Int8OID, items, func(b []byte, it *item) ([]byte, bool) {
		return binary.BigEndian.AppendUint64(b, it.To.Owner), false
	})
}

func (r *raw) texts(items []*item, of func(*store.Record) string) {
	r.array(pgtype.ByteaOID, items, func(b []byte, it *item) ([]byte, bool) { return append(b, of(&it.To)...), false })
}

func (r *raw) datas(items []*item, of func(*store.Record) []byte) {
	r.array(pgtype.ByteaOID, items, func(b []byte, it *item) ([]byte, bool) {
		d := of(&it.To)
		return append(b, d...), d == nil
	})
}
