package semeltest

import (
	"time"

	"github.com/semelgo/semel/store"
)

// soon is a time that a check can let pass.
func (r *rig) soon() time.Duration {
	if r.advance == nil {
		return 20 * time.Millisecond
	}
	return 10 * time.Minute
}

// pass lets soon go by: by moving the store's clock, or else by asking the
// store until it has come for the record.
func (r *rig) pass(id store.ID, come func(store.Record) bool) {
	r.Helper()
	if r.advance != nil {
		r.advance(r.soon() + time.Second)
		return
	}
	for {
		rec := r.mustRead(id)
		if come(rec) {
			return
		}
		if pause(r.ctx) != nil {
			r.Fatalf("the time never comes: Due %v, Expire %v, Age %v, Since %v",
				rec.Due, rec.Expire, rec.Age, rec.Since)
		}
	}
}

func isDue(rec store.Record) bool     { return rec.Due <= 0 }
func isExpired(rec store.Record) bool { return rec.Expire < 0 }

// aged says that the record has been there for soon, and as it is now. A store may
// read its clock anew for each column.
func (r *rig) aged(rec store.Record) bool { return min(rec.Age, rec.Since) >= r.soon() }

// near says whether got may be read of a time set to want a moment ago.
func near(got, want time.Duration) bool {
	return got <= want+time.Millisecond && got > want-slack
}

// recent says whether got may be read of the age of what was just written.
func recent(got time.Duration) bool { return got > -time.Millisecond && got < slack }
