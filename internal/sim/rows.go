package sim

import (
	"time"

	"github.com/semelgo/semel/store"
)

// row is a record in the store. Time does not pass: a lease runs until the
// scheduler ends it.
type row struct {
	id              store.ID
	scope           string
	rec             store.Record // with the zero Token: there is none
	due             bool         // Due has come
	hasExpiry       bool         // has a time at which it may be purged
	purgeable       bool         // retention is over
	retentionOver   bool         // because the scheduler said so
	takenOver       bool         // is a takeover
	tokenOver       bool         // the time of its one-time token is over
	isCancelRequest bool         // requests the cancellation of another actor's attempt
	epoch           int          // how often the record was purged
	request         string       // the letter it was created for
}

// age is the Age and Since of every record, because the explorer's time does
// not pass. A token whose time is over has the Age tokenTime.
const (
	age       = time.Second
	tokenTime = time.Hour
)

// read is the record as a store answers it.
func (r *row) read() *store.Record {
	if r.rec.State == store.Absent {
		return nil
	}
	rec := r.rec
	rec.Age, rec.Since = age, age
	if r.tokenOver {
		rec.Age = tokenTime
	}
	if r.due {
		rec.Due = -1
	}
	return &rec
}

func (r *row) current() store.SwapResult {
	return store.SwapResult{Token: r.rec.Token, Record: r.read()}
}

// mayChange reports whether the store would apply c now. A record without a due
// time counts as due.
func (r *row) mayChange(c *store.Change) bool {
	return r.rec.Token == c.If && (!c.IfDue || r.due || !timed(r.rec.State))
}

// timed tells whether records in this state have a Due.
func timed(s store.State) bool { return s == store.Pending || s == store.InProgress }

// set applies a change.
func (r *row) set(to store.Record) {
	before := r.rec
	if before.Token == to.Token { // the times and nothing else
		due, expire := to.Due, to.Expire
		to = before
		to.Due, to.Expire = due, expire
	}
	r.rec = to
	if before.State != store.Absent {
		r.rec.Operation, r.rec.Scope, r.rec.Key = before.Operation, before.Scope, before.Key
		r.rec.Fingerprint = before.Fingerprint
		r.rec.Input = keep(to.Input, before.Input)
		r.rec.Outcome = keep(to.Outcome, before.Outcome)
	}
	if !timed(to.State) {
		r.rec.Due = 0
	}
	r.due = timed(to.State) && to.Due <= 0
	r.hasExpiry = to.Expire > 0 && !to.State.Unfinished()
	r.purgeable, r.retentionOver = r.hasExpiry && to.Expire < time.Second, false
	if !r.hasExpiry {
		r.rec.Expire = 0
	}
}

func keep(to, before []byte) []byte {
	if to == nil {
		return before
	}
	return to
}

// purge removes the record. After its retention, the next record of the key
// counts as a new one.
func (r *row) purge() {
	r.rec, r.due, r.hasExpiry, r.purgeable, r.tokenOver = store.Record{}, false, false, false, false
	if r.retentionOver {
		r.retentionOver = false
		r.epoch++
	}
}

func (w *world) rowDigest(d digest, r *row) digest {
	d = d.add(uint64(r.rec.State)).add(uint64(r.rec.Attempt)).add(w.ownerNumber(r.rec.Owner)).add(uint64(r.epoch))
	if r.rec.State == store.Absent {
		return d
	}
	d = d.flag(r.due).flag(r.tokenOver).flag(r.hasExpiry).flag(r.purgeable).flag(r.rec.Tainted).flag(r.takenOver && w.shared != nil)
	return d.bytes(r.rec.Fingerprint).bytes(r.rec.Outcome)
}

// swap is the store's compare-and-swap, carried out at once.
func (w *world) swap(actor int, c *store.Change) store.SwapResult {
	r := w.row(c.To.ID)
	switch {
	case r.mayChange(c):
		w.write(actor, r, c)
		return store.SwapResult{Token: c.To.Token}
	case r.rec.Token == c.To.Token:
		w.mark(MarkAlreadyApplied)
		return store.SwapResult{Token: c.To.Token}
	default:
		return r.current()
	}
}

// write applies a change and checks the invariants.
func (w *world) write(actor int, r *row, c *store.Change) {
	before := *r
	r.set(c.To)
	if before.rec.Token != c.To.Token {
		r.takenOver = before.rec.State == store.InProgress && c.To.State == store.InProgress
	}
	w.checkChange(actor, &before, r)
}

// noteResult adds a result of the store to the actor's history.
func (a *actor) noteResult(s store.SwapResult) {
	d := digestSeed.flag(s.Busy).add(uint64(s.Token.State)).add(uint64(s.Token.Attempt)).add(a.w.ownerNumber(s.Token.Owner))
	if s.Record != nil {
		due := s.Record.Due <= 0
		d = d.flag(due).flag(s.Record.Age >= tokenTime).flag(s.Record.Tainted).bytes(s.Record.Fingerprint).bytes(s.Record.Outcome)
	}
	a.note(uint64(d))
}
