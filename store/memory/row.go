package memory

import (
	"bytes"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// never is an instant in the infinite future.
const never time.Duration = math.MaxInt64

// row is a record with instants of the store's clock. Its bytes are never changed,
// so copies of a row may share them. It has few pointers, because the garbage
// collector follows every pointer in every cycle.
type row struct {
	id    store.ID
	token store.Token

	due     time.Duration
	expire  time.Duration // never: it does not expire
	created time.Duration
	changed time.Duration // when the token last changed

	operation string
	outcome   []byte
	extras    *rowExtras // nil: none
	place     uint32     // its place in rows
	priority  int8
	tainted   bool

	// lengths: of the scope and the key in names, and of print; longer values are
	// in extras
	scoped, keyed, printed uint8
	print                  [19]byte // the fingerprint
	names                  [60]byte
}

// rowExtras holds what few rows have.
type rowExtras struct {
	names              string // the scope and the key; empty: they are in the row
	scoped             int    // length of the scope in names
	fingerprint, input []byte
}

// tokenOf returns r's token, and the zero token if r is nil.
func tokenOf(r *row) store.Token {
	if r == nil {
		return store.Token{}
	}
	return r.token
}

// admits reports whether c may be applied to r, which is nil if there is no record.
func (r *row) admits(c *store.Change, now time.Duration) bool {
	return tokenOf(r) == c.If && (r == nil || !c.IfDue || r.due <= now)
}

// change applies c to r. own copies the outcome if necessary.
func (r *row) change(c *store.Change, now time.Duration, own func([]byte) []byte) {
	r.setTimes(&c.To, now)
	if c.If == c.To.Token { // a heartbeat changes the times only
		return
	}
	r.token, r.changed, r.tainted = c.To.Token, now, c.To.Tainted
	if c.To.Input != nil {
		s := new(rowExtras)
		if r.extras != nil {
			*s = *r.extras // copies of the row share it
		}
		s.input, r.extras = bytes.Clone(c.To.Input), s
	}
	if c.To.Outcome != nil {
		r.outcome = own(c.To.Outcome)
	}
}

// set sets r, a new row, to the record.
func (r *row) set(to *store.Record, now time.Duration, own func([]byte) []byte) {
	r.id, r.token, r.created, r.changed = to.ID, to.Token, now, now
	r.operation, r.outcome, r.tainted, r.priority = to.Operation, own(to.Outcome), to.Tainted, to.Priority
	longNames, longPrint := len(to.Scope)+len(to.Key) > len(r.names), len(to.Fingerprint) > len(r.print)
	if longNames || longPrint || to.Input != nil {
		r.extras = &rowExtras{input: bytes.Clone(to.Input)}
	}
	if longNames {
		r.extras.names, r.extras.scoped = to.Scope+to.Key, len(to.Scope)
	} else {
		r.scoped = uint8(copy(r.names[:], to.Scope))
		r.keyed = uint8(copy(r.names[r.scoped:], to.Key))
	}
	if longPrint {
		r.extras.fingerprint = bytes.Clone(to.Fingerprint)
	} else {
		r.printed = uint8(copy(r.print[:], to.Fingerprint))
	}
	r.setTimes(to, now)
}

// called returns the scope and the key.
func (r *row) called() (scope, key string) {
	if r.extras != nil && r.extras.names != "" {
		return r.extras.names[:r.extras.scoped], r.extras.names[r.extras.scoped:]
	}
	names := string(r.names[:r.scoped+r.keyed])
	return names[:r.scoped], names[r.scoped:]
}

func (r *row) fingerprint() []byte {
	if r.extras != nil && r.extras.fingerprint != nil {
		return r.extras.fingerprint
	}
	return r.print[:r.printed]
}

// setTimes sets the times that the state has.
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

// later returns now+d, and never if that overflows.
func later(now, d time.Duration) time.Duration {
	if d > 0 && now > never-d {
		return never
	}
	return now + d
}

// recordCopy is a record that was read, with its usual parts in one allocation.
type recordCopy struct {
	record store.Record
	print  [19]byte
}

// record returns a copy of the record for the caller, with durations relative to
// now. own copies large bytes if necessary.
func (r *row) record(now time.Duration, own func([]byte) []byte) *store.Record {
	read := new(recordCopy)
	rec := &read.record
	*rec = store.Record{
		ID: r.id, Token: r.token,
		Age: now - r.created, Since: now - r.changed,
		Operation: r.operation, Tainted: r.tainted, Priority: r.priority,
		Fingerprint: append(read.print[:0], r.fingerprint()...), Outcome: own(r.outcome),
	}
	rec.Scope, rec.Key = r.called()
	if r.extras != nil {
		rec.Input = own(r.extras.input)
	}
	if hasDue(r.token.State) {
		rec.Due = r.due - now
	}
	if r.expire != never {
		rec.Expire = left(r.expire, now)
	}
	return rec
}

// left is never zero, because an Expire of zero means never.
func left(at, now time.Duration) time.Duration {
	if at == now {
		return -1
	}
	return at - now
}
