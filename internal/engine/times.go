package engine

import (
	"time"

	"github.com/semelgo/semel/store"
)

// times are the durations of one call.
type times struct {
	lease, beat, maxRun, retention, wait time.Duration
}

func (t *times) join(o *Options, op *operation) {
	t.lease = either(op.lease, o.Lease)
	t.beat = op.beat
	if op.lease == 0 {
		t.beat = either(t.beat, o.Heartbeat)
	}
	t.beat = either(t.beat, t.lease/3)
	t.maxRun = either(op.maxRun, o.MaxRun)
	t.retention = either(op.retention, o.Retention)
	t.wait = either(op.wait, o.Wait)
}

// times combines the operation's durations with the engine's.
func (o *Options) times(op *operation) (t times) {
	t.join(o, op)
	return t
}

// timesOf returns the durations for the record of id. A key with a time from a
// clock that is ahead looks younger by the skew, so its record is kept for the skew
// longer.
func (o *Options) timesOf(op *operation, id store.ID) (t times) {
	t.of(o, op, id)
	return t
}

// of sets t to the result of timesOf.
func (t *times) of(o *Options, op *operation, id store.ID) {
	t.join(o, op)
	if op.keyTime == nil {
		return
	}
	if _, timed := id.Time(); timed {
		t.retention += op.skew
	}
}

// firstLease is the lease of a claim: at most max run.
func (t times) firstLease() time.Duration {
	if t.maxRun > 0 {
		return min(t.lease, t.maxRun)
	}
	return t.lease
}
