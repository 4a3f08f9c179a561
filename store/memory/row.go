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
// once they are there, so that copies of a row may share them.
type row struct {
	id    store.ID
	token store.Token

	due     time.Duration
	expire  time.Duration // never, if it does not expire
	created time.Duration
	changed time.Duration // when the token last changed

	operation, scope, key string
	fingerprint           []byte
	input, outcome        []byte
	tainted               bool
	priority              int8

	place int // in the expiry queue; guarded by Store.mu

	print [24]byte // room for a fingerprint of the usual length
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

// change makes of r what stands after c.
func (r *row) change(c *store.Change, now time.Duration) {
	r.setTimes(&c.To, now)
	if c.If == c.To.Token { // a heartbeat: the times and nothing else
		return
	}
	r.token, r.changed, r.tainted = c.To.Token, now, c.To.Tainted
	if c.To.Input != nil {
		r.input = bytes.Clone(c.To.Input)
	}
	if c.To.Outcome != nil {
		r.outcome = bytes.Clone(c.To.Outcome)
	}
}

func newRow(to *store.Record, now time.Duration) *row {
	r := &row{
		id: to.ID, token: to.Token, created: now, changed: now,
		operation: to.Operation, scope: to.Scope, key: to.Key,
		input: bytes.Clone(to.Input), outcome: bytes.Clone(to.Outcome),
		tainted: to.Tainted, priority: to.Priority,
	}
	if to.Fingerprint != nil {
		r.fingerprint = append(r.print[:0], to.Fingerprint...)
	}
	r.setTimes(to, now)
	return r
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
	room := make([]byte, 0, len(r.fingerprint)+len(r.input)+len(r.outcome))
	rec := &store.Record{
		ID: r.id, Token: r.token,
		Age: now - r.created, Since: now - r.changed,
		Operation: r.operation, Scope: r.scope, Key: r.key,
		Tainted: r.tainted, Priority: r.priority,
	}
	rec.Fingerprint, room = copied(r.fingerprint, room)
	rec.Input, room = copied(r.input, room)
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
