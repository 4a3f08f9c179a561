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

	operation string
	outcome   []byte
	seldom    *seldom // nil: nothing of it
	place     uint32  // where it stands
	priority  int8
	tainted   bool

	// What is of the usual length is here, and is else seldom.
	scoped, keyed, printed uint8    // how much of names is the scope, and then the key, and how much of print there is
	print                  [19]byte // the fingerprint
	names                  [60]byte
}

// seldom is what few rows have.
type seldom struct {
	names              string // the scope and the key; empty: they are in the row
	scoped             int    // how much of names is the scope
	fingerprint, input []byte
}

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
		s := new(seldom)
		if r.seldom != nil {
			*s = *r.seldom // which copies of the row share
		}
		s.input, r.seldom = bytes.Clone(c.To.Input), s
	}
	if c.To.Outcome != nil {
		r.outcome = own(c.To.Outcome)
	}
}

// set makes of r, which is empty but for its place, a new row.
func (r *row) set(to *store.Record, now time.Duration, own func([]byte) []byte) {
	r.id, r.token, r.created, r.changed = to.ID, to.Token, now, now
	r.operation, r.outcome, r.tainted, r.priority = to.Operation, own(to.Outcome), to.Tainted, to.Priority
	longNames, longPrint := len(to.Scope)+len(to.Key) > len(r.names), len(to.Fingerprint) > len(r.print)
	if longNames || longPrint || to.Input != nil {
		r.seldom = &seldom{input: bytes.Clone(to.Input)}
	}
	if longNames {
		r.seldom.names, r.seldom.scoped = to.Scope+to.Key, len(to.Scope)
	} else {
		r.scoped = uint8(copy(r.names[:], to.Scope))
		r.keyed = uint8(copy(r.names[r.scoped:], to.Key))
	}
	if longPrint {
		r.seldom.fingerprint = bytes.Clone(to.Fingerprint)
	} else {
		r.printed = uint8(copy(r.print[:], to.Fingerprint))
	}
	r.setTimes(to, now)
}

// called returns the scope and the key.
func (r *row) called() (scope, key string) {
	if r.seldom != nil && r.seldom.names != "" {
		return r.seldom.names[:r.seldom.scoped], r.seldom.names[r.seldom.scoped:]
	}
	names := string(r.names[:r.scoped+r.keyed])
	return names[:r.scoped], names[r.scoped:]
}

func (r *row) fingerprint() []byte {
	if r.seldom != nil && r.seldom.fingerprint != nil {
		return r.seldom.fingerprint
	}
	return r.print[:r.printed]
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

// reading is a record that was read, with room for what all of them have.
type reading struct {
	record store.Record
	print  [19]byte
}

// record returns what callers read, relative to now: copies, and what own makes of
// large bytes.
func (r *row) record(now time.Duration, own func([]byte) []byte) *store.Record {
	read := new(reading)
	rec := &read.record
	*rec = store.Record{
		ID: r.id, Token: r.token,
		Age: now - r.created, Since: now - r.changed,
		Operation: r.operation, Tainted: r.tainted, Priority: r.priority,
		Fingerprint: append(read.print[:0], r.fingerprint()...), Outcome: own(r.outcome),
	}
	rec.Scope, rec.Key = r.called()
	if r.seldom != nil {
		rec.Input = own(r.seldom.input)
	}
	if hasDue(r.token.State) {
		rec.Due = r.due - now
	}
	if r.expire != never {
		rec.Expire = left(r.expire, now)
	}
	return rec
}

// left is never zero, because an Expire of zero reads as never.
func left(at, now time.Duration) time.Duration {
	if at == now {
		return -1
	}
	return at - now
}
