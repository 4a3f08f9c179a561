package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/semelgo/semel/store"
)

// rawRow is a row in PostgreSQL's binary formats, of which one column after the other
// is read.
type decoder struct {
	columns [][]byte
	at      int
	wrong   int // which was not of its size, from 1 on
}

// next is the next column, nil for null.
func (r *decoder) next() []byte {
	r.at++
	return r.columns[r.at-1]
}

// fixed is the next column, of a type whose values have n bytes; nil for null.
func (r *decoder) fixed(n int) []byte {
	b := r.next()
	if b != nil && len(b) != n {
		r.wrong, b = r.at, nil
	}
	return b
}

func (r *decoder) int16() int16 {
	if b := r.fixed(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *decoder) int32() int32 {
	if b := r.fixed(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *decoder) int64() (n int64, there bool) {
	if b := r.fixed(8); b != nil {
		return int64(binary.BigEndian.Uint64(b)), true
	}
	return 0, false
}

// instant is microseconds, from an instant on that is the same for all of them.
func (r *decoder) instant() (i instant) {
	i.micros, i.there = r.int64()
	return i
}

// recordColumns is how many there are in columns.
const recordColumns = 17

// record reads what columns chooses. The texts share one string, and the other bytes
// one slice.
func (r *decoder) record() (*store.Record, error) {
	if n := len(r.columns) - r.at; n != recordColumns {
		return nil, fmt.Errorf("read a row: it has %d columns of a record, want %d", n, recordColumns)
	}
	var token storedToken
	var at instants
	record := &store.Record{}
	copy(record.ID[:], r.fixed(len(record.ID)))
	token.state, token.attempt = r.int16(), r.int32()
	token.owner, _ = r.int64()
	at.due, at.expires, at.created, at.changed, at.now = r.instant(), r.instant(), r.instant(), r.instant(), r.instant()
	operation, scope, key, fingerprint := r.next(), r.next(), r.next(), r.next()
	record.Priority = int8(r.int16())
	tainted := r.fixed(1)
	if r.wrong > 0 {
		return nil, fmt.Errorf("read a row: column %d is not of its size", r.wrong)
	}
	record.Token, record.Tainted = token.token(), tainted != nil && tainted[0] != 0
	at.tell(record)
	record.Operation, record.Scope, record.Key = sharedBytes(operation, scope, key)
	record.Fingerprint, record.Input, record.Outcome = copiedBytes(fingerprint, r.next(), r.next())
	return record, nil
}

// shared copies texts into one string.
func sharedBytes(a, b, c []byte) (x, y, z string) {
	all := make([]byte, 0, 128)
	s := string(append(append(append(all, a...), b...), c...))
	return s[:len(a)], s[len(a) : len(a)+len(b)], s[len(a)+len(b):]
}

// apart copies bytes into one slice, none of which grows into the next.
func copiedBytes(a, b, c []byte) (x, y, z []byte) {
	all := make([]byte, 0, len(a)+len(b)+len(c))
	of := func(d []byte) []byte {
		if d == nil {
			return nil
		}
		from := len(all)
		all = append(all, d...)
		return all[from:len(all):len(all)]
	}
	return of(a), of(b), of(c)
}
