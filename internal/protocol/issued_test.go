package protocol

import (
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// TestIssuedRecords: an attempt on an issued record never creates it, and starts on no
// Pending record that is too old, unless an earlier attempt may have had an effect. A
// voided write is ruled out at any age.
func TestIssuedRecords(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	record := func(s store.State, age time.Duration, tainted bool) (r store.Record) {
		r.State, r.Attempt, r.Owner, r.Age, r.Tainted = s, 1, theirs, age, tainted
		return r
	}
	for name, tt := range map[string]struct {
		current store.Record
		step    Step
		policy  Policy
		want    Answer
	}{
		"absent":                 {store.Record{}, StepClaim, Hold, Lost},
		"absent, inline":         {store.Record{}, StepInline, Atomic, Lost},
		"absent, void":           {store.Record{}, StepVoid, Atomic, Lost},
		"in time":                {record(store.Pending, limit-1, false), StepClaim, Hold, Apply},
		"in time, inline":        {record(store.Pending, limit-1, false), StepInline, Atomic, Apply},
		"too old":                {record(store.Pending, limit, false), StepClaim, Hold, Expired},
		"too old, inline":        {record(store.Pending, limit, false), StepInline, Atomic, Expired},
		"too old, void":          {record(store.Pending, limit, false), StepVoid, Atomic, Apply},
		"too old, tainted":       {record(store.Pending, limit, true), StepClaim, AtLeastOnce, Apply},
		"too old, lease expired": {record(store.InProgress, limit, false), StepClaim, AtLeastOnce, Apply},
		"too old, succeeded":     {record(store.Succeeded, limit, false), StepClaim, Hold, Replay},
		"too old, failed":        {record(store.Failed, limit, false), StepInline, Atomic, Replay},
		"too old, in doubt":      {record(store.InDoubt, limit, false), StepClaim, Hold, InDoubt},
		"too old, cancelled":     {record(store.Pending, limit, false), StepCancel, Hold, Apply},
	} {
		e := Event{Step: tt.step, To: store.Succeeded, Owner: fresh, Policy: tt.policy, Issued: true, MaxAge: limit}
		if tt.step == StepVoid {
			e.To = store.Pending
		}
		if got := Next(tt.current, e).Answer; got != tt.want {
			t.Errorf("%s: got answer %d, want %d", name, got, tt.want)
		}
	}
}
