package memory

import (
	"bytes"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// never is an instant in the infinite future.
const never time.Duration = math.MaxInt64

// row is a record with instants of the store's clock in place of its durations. Its
// bytes are never changed, so copies of a row share them.
type row struct {
	store.Record

	created, changed time.Duration // changed: when the token last changed
	due              time.Duration
	expire           time.Duration // never: it does not expire
	print            [26]byte      // memory of the fingerprint, if it is not longer
}

// blockRows is the number of rows of a block, which stays in memory as long as one of
// them.
const blockRows = 16

// newRow returns the row of a create. Rows are allocated in blocks, which costs less
// than one by one.
func (s *Store) newRow(to *store.Record, now time.Duration) *row {
	if len(s.unused) == 0 {
		s.unused = make([]row, blockRows)
	}
	r := &s.unused[0]
	s.unused = s.unused[1:]
	*r = row{Record: *to, created: now, changed: now}
	r.Fingerprint, r.Input = append(r.print[:0], to.Fingerprint...), bytes.Clone(to.Input)
	r.setTimes(to, now)
	return r
}

// token returns r's token, and the zero token if r is nil.
func (r *row) token() store.Token {
	if r == nil {
		return store.Token{}
	}
	return r.Token
}

// admits reports whether c may be applied to r, which is nil if there is no record.
func (r *row) admits(c *store.Change, now time.Duration) bool {
	return r.token() == c.If && (r == nil || !c.IfDue || r.due <= now)
}

// change applies c to r.
func (r *row) change(c *store.Change, now time.Duration) {
	r.setTimes(&c.To, now)
	if c.If == c.To.Token { // a heartbeat changes the times only
		return
	}
	r.Token, r.changed, r.Tainted = c.To.Token, now, c.To.Tainted
	if c.To.Input != nil {
		r.Input = bytes.Clone(c.To.Input)
	}
	if c.To.Outcome != nil {
		r.Outcome = c.To.Outcome
	}
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

// record returns the record with durations relative to now. It shares the row's
// bytes.
func (r *row) record(now time.Duration) *store.Record {
	rec := r.Record
	rec.Age, rec.Since, rec.Due, rec.Expire = now-r.created, now-r.changed, 0, 0
	if hasDue(r.State) {
		rec.Due = r.due - now
	}
	if r.expire != never {
		if rec.Expire = r.expire - now; rec.Expire == 0 {
			rec.Expire = -1 // zero means never
		}
	}
	return &rec
}

// result returns r as a result, which shares the row's bytes. r is nil if there is no
// record.
func (r *row) result(now time.Duration) store.SwapResult {
	if r == nil {
		return store.SwapResult{}
	}
	return store.SwapResult{Token: r.Token, Record: r.record(now)}
}

// cloneBytes makes the bytes of a record that was read the caller's own.
func cloneBytes(r *store.Record) *store.Record {
	if r != nil {
		r.Fingerprint, r.Input, r.Outcome = bytes.Clone(r.Fingerprint), bytes.Clone(r.Input), bytes.Clone(r.Outcome)
	}
	return r
}
