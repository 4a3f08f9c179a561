package storetest

import (
	"time"

	"github.com/semelgo/semel/store"
)

// shortTime is a duration that a check can wait for.
func (r *harness) shortTime() time.Duration {
	if r.advance == nil {
		return 20 * time.Millisecond
	}
	return 10 * time.Minute
}

// passTime lets shortTime pass: it moves the store's clock, or polls the store
// until the record shows that the time has passed.
func (r *harness) passTime(id store.ID, come func(store.Record) bool) {
	r.Helper()
	if r.advance != nil {
		r.advance(r.shortTime() + time.Second)
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

// aged reports that the record's age is shortTime. A store may read its clock for
// each column.
func (r *harness) aged(rec store.Record) bool { return min(rec.Age, rec.Since) >= r.shortTime() }

// near reports whether got is a valid reading of a time that was just set to want.
func near(got, want time.Duration) bool {
	return got <= want+time.Millisecond && got > want-clockSlack
}

// recent reports whether got is a valid reading of the age of a new record.
func recent(got time.Duration) bool { return got > -time.Millisecond && got < clockSlack }
