package memory

import (
	"bytes"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// never is an instant that does not come.
const never time.Duration = math.MaxInt64

// row is a record with instants on the store's clock. A row is never changed
// once it is built: a change builds the next one.
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
}

// tokenOf returns r's token, the zero one if nothing stands.
func tokenOf(r *row) store.Token {
	if r == nil {
		return store.Token{}
	}
	return r.token
}

// next returns the row that stands after c, or nil when c asks for something
// else than what stands.
func (r *row) next(c *store.Change, now time.Duration) *row {
	switch {
	case tokenOf(r) != c.If:
		return nil
	case r == nil:
		return newRow(&c.To, now)
	case c.IfDue && r.due > now:
		return nil
	}
	n := *r
	n.setTimes(&c.To, now)
	if c.If == c.To.Token { // a heartbeat: the times and nothing else
		return &n
	}
	n.token, n.changed, n.tainted = c.To.Token, now, c.To.Tainted
	if c.To.Input != nil {
		n.input = bytes.Clone(c.To.Input)
	}
	if c.To.Outcome != nil {
		n.outcome = bytes.Clone(c.To.Outcome)
	}
	return &n
}

func newRow(to *store.Record, now time.Duration) *row {
	r := &row{
		id: to.ID, token: to.Token, created: now, changed: now,
		operation: to.Operation, scope: to.Scope, key: to.Key,
		fingerprint: bytes.Clone(to.Fingerprint),
		input:       bytes.Clone(to.Input), outcome: bytes.Clone(to.Outcome),
		tainted: to.Tainted, priority: to.Priority,
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
	rec := &store.Record{
		ID: r.id, Token: r.token,
		Age: now - r.created, Since: now - r.changed,
		Operation: r.operation, Scope: r.scope, Key: r.key,
		Fingerprint: bytes.Clone(r.fingerprint),
		Tainted:     r.tainted, Priority: r.priority,
		Input: bytes.Clone(r.input), Outcome: bytes.Clone(r.outcome),
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
