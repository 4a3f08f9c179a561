package memory

import (
	"bytes"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// never is an instant that does not come.
const never time.Duration = math.MaxInt64

// row is a record with instants on the store's clock. Its bytes are never changed
// once they are there, so that copies of a row may share them. It has few pointers,
// because the collector follows each of every row each time.
type row struct {
	id    store.ID
	token store.Token

	due     time.Duration
	expire  time.Duration // never, if it does not expire
	created time.Duration
	changed time.Duration // when the token last changed

	operation, scope, key string
	outcome               []byte
	seldom                *seldom // nil: nothing of it
	priority              int8
	tainted               bool
	printed               uint8    // how much of print is the fingerprint
	print                 [21]byte // which is there if it is of the usual length
}

// seldom is what few rows have.
type seldom struct{ fingerprint, input []byte }

// rowBlock is room for rows, which are made as many at a time as are together in 512
// bytes, up to which the collector looks at things of one size together. As long as
// one of them stands, the others' places are kept.
type rowBlock []row

func (b *rowBlock) row() *row {
	if len(*b) == 0 {
		*b = make([]row, 3)
	}
	r := &(*b)[0]
	*b = (*b)[1:]
	return r
}

// clear lets go of what r holds. Nobody may use it any more.
func (r *row) clear() { *r = row{} }

// tokenOf returns r's token, the zero one if nothing stands.
func tokenOf(r *row) store.Token {
	if r == nil {
		return store.Token{}
	}
	return r.token
}

// admits tells whether c may be made on what stands: nothing, if r is nil.
func (r *row) admits(c *store.Change, now time.Duration) bool {
	return tokenOf(r) == c.If && (r == nil || !c.IfDue || r.due <= now)
}

// change makes of r what stands after c. It keeps of the outcome what own makes of it.
func (r *row) change(c *store.Change, now time.Duration, own func([]byte) []byte) {
	r.setTimes(&c.To, now)
	if c.If == c.To.Token { // a heartbeat: the times and nothing else
		return
	}
	r.token, r.changed, r.tainted = c.To.Token, now, c.To.Tainted
	if c.To.Input != nil {
		r.seldom = &seldom{fingerprint: r.seldom.ofFingerprint(), input: bytes.Clone(c.To.Input)}
	}
	if c.To.Outcome != nil {
		r.outcome = own(c.To.Outcome)
	}
}

// set makes of r, which is empty, a new row.
func (r *row) set(to *store.Record, now time.Duration, own func([]byte) []byte) {
	r.id, r.token, r.created, r.changed = to.ID, to.Token, now, now
	r.operation, r.scope, r.key = to.Operation, to.Scope, to.Key
	r.outcome, r.tainted, r.priority = own(to.Outcome), to.Tainted, to.Priority
	long := len(to.Fingerprint) > len(r.print)
	if !long {
		r.printed = uint8(copy(r.print[:], to.Fingerprint))
	}
	if long || to.Input != nil {
		r.seldom = &seldom{input: bytes.Clone(to.Input)}
	}
	if long {
		r.seldom.fingerprint = bytes.Clone(to.Fingerprint)
	}
	r.setTimes(to, now)
}

func (r *row) fingerprint() []byte {
	if long := r.seldom.ofFingerprint(); long != nil {
		return long
	}
	return r.print[:r.printed]
}

func (s *seldom) ofFingerprint() []byte {
	if s == nil {
		return nil
	}
	return s.fingerprint
}

func (r *row) input() []byte {
	if r.seldom == nil {
		return nil
	}
	return r.seldom.input
}

// setTimes keeps of to's times those that its state has.
func (r *row) setTimes(to *store.Record, now time.Duration) {
	r.due, r.expire = 0, never
	if hasDue(to.State) {
		r.due = later(now, to.Due)
	}
	if to.Expire != 0 && !to.State.Unfinished() {
		r.expire = later(now, to.Expire)
	}
}

func hasDue(s store.State) bool { return s == store.Pending || s == store.InProgress }

// later returns now+d, and never when that overflows.
func later(now, d time.Duration) time.Duration {
	if d > 0 && now > never-d {
		return never
	}
	return now + d
}

// record returns what callers read: copies, and times relative to now.
func (r *row) record(now time.Duration) *store.Record {
	fingerprint, input := r.fingerprint(), r.input()
	room := make([]byte, 0, len(fingerprint)+len(input)+len(r.outcome))
	rec := &store.Record{
		ID: r.id, Token: r.token,
		Age: now - r.created, Since: now - r.changed,
		Operation: r.operation, Scope: r.scope, Key: r.key,
		Tainted: r.tainted, Priority: r.priority,
	}
	rec.Fingerprint, room = copied(fingerprint, room)
	rec.Input, room = copied(input, room)
	rec.Outcome, _ = copied(r.outcome, room)
	if hasDue(r.token.State) {
		rec.Due = r.due - now
	}
	if r.expire != never {
		rec.Expire = left(r.expire, now)
	}
	return rec
}

// copied returns a copy of b that has its place in room, and the room that is left.
func copied(b, room []byte) (of, rest []byte) {
	if b == nil {
		return nil, room
	}
	end := len(room) + len(b)
	room = append(room, b...)
	return room[end-len(b) : end : end], room
}

// left is never zero, because an Expire of zero reads as never.
func left(at, now time.Duration) time.Duration {
	if at == now {
		return -1
	}
	return at - now
}
