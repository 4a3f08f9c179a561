package engine

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// Options are the defaults of an engine's operations.
type Options struct {
	Survive       store.Failure
	Lease         time.Duration
	Heartbeat     time.Duration
	MaxRun        time.Duration
	Retention     time.Duration
	Wait          time.Duration
	MaxWaiters    int
	RecordTimeout time.Duration
	MaxQueued     int
	CacheBytes    int
	CacheAge      time.Duration
	MaxUnrecorded int
	Operations    []Declared
	Clock         func() time.Time
	Observer      event.Observer
	Tracer        event.Tracer
	Journal       journal.Journal
}

// defaultRetention is the retention of an engine whose Options set none. Records of
// enqueued calls do not store it.
const defaultRetention = 24 * time.Hour

func (o *Options) setDefaults() error {
	err := notNegative(
		duration{"Lease", o.Lease}, duration{"Heartbeat", o.Heartbeat}, duration{"MaxRun", o.MaxRun},
		duration{"Retention", o.Retention}, duration{"Wait", o.Wait}, duration{"RecordTimeout", o.RecordTimeout},
		duration{"CacheAge", o.CacheAge},
	)
	if err != nil {
		return err
	}
	for _, n := range []struct {
		field string
		of    int
	}{{"MaxWaiters", o.MaxWaiters}, {"MaxQueued", o.MaxQueued}, {"CacheBytes", o.CacheBytes}} {
		if n.of < 0 {
			return callerr.Invalid(n.field, "is negative")
		}
	}
	if o.Survive > store.Failover {
		return callerr.Invalid("Survive", "is not a failure that package store knows")
	}
	o.Survive = cmp.Or(o.Survive, store.PowerLoss)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Retention = cmp.Or(o.Retention, defaultRetention)
	o.MaxWaiters = cmp.Or(o.MaxWaiters, 1000)
	o.MaxQueued = cmp.Or(o.MaxQueued, 10_000)
	o.RecordTimeout = cmp.Or(o.RecordTimeout, 5*time.Second)
	o.MaxUnrecorded = cmp.Or(o.MaxUnrecorded, 1000)
	o.CacheAge = cmp.Or(o.CacheAge, time.Second)
	if o.Clock == nil {
		o.Clock = clock.Now
	}
	if o.Heartbeat >= o.Lease {
		return callerr.Invalid("Heartbeat", "must be shorter than Lease")
	}
	for i, op := range o.Operations {
		if op == nil {
			return callerr.Invalid("Operations", "has a nil entry")
		}
		if slices.ContainsFunc(o.Operations[:i], func(other Declared) bool {
			return other.declared().name == op.declared().name && other.declared() != op.declared()
		}) {
			return callerr.Invalid("Operations", "has two definitions of "+op.declared().name)
		}
		if err := op.declared().err; err != nil {
			return err
		}
		if err := o.outlived(op.declared()); err != nil {
			return err
		}
	}
	return o.outlived(&operation{})
}

// outlived checks that a record is kept for longer than its leader may retry
// recording, and than its key may be used again. If it were purged before, it would
// look as if nothing had happened.
func (o *Options) outlived(op *operation) error {
	switch keep := cmp.Or(op.retention, o.Retention); {
	case keep <= o.RecordTimeout:
		return callerr.Invalid("Retention", "must be longer than RecordTimeout, "+o.RecordTimeout.String()+"; it is "+keep.String())
	case op.generation > 0 && op.generation <= op.redelivery:
		return callerr.Invalid("Generation", "must be longer than Redelivery, "+op.redelivery.String()+"; it is "+op.generation.String())
	case keep <= op.redelivery:
		return callerr.Invalid("Retention", "must be longer than Redelivery, "+op.redelivery.String()+"; it is "+keep.String())
	}
	return nil
}

// Times are the durations of an operation's attempts.
type Times struct {
	Lease     time.Duration // until other callers may take over, without a renewal
	Heartbeat time.Duration // interval of renewals
	MaxRun    time.Duration // upper bound of an attempt; zero: none
	Retention time.Duration // how long a finished record is kept
	Wait      time.Duration // how long a follower waits
}

// times combines the operation's durations with the engine's.
func (o *Options) times(op *operation) Times {
	t := Times{
		Lease: cmp.Or(op.lease, o.Lease), Heartbeat: op.beat, MaxRun: cmp.Or(op.maxRun, o.MaxRun),
		Retention: cmp.Or(op.retention, o.Retention), Wait: cmp.Or(op.wait, o.Wait),
	}
	if op.lease == 0 {
		t.Heartbeat = cmp.Or(t.Heartbeat, o.Heartbeat)
	}
	t.Heartbeat = cmp.Or(t.Heartbeat, t.Lease/3)
	return t
}

// timesOf returns the durations for the record of id. A key with a time from a
// clock that is ahead looks younger by the skew, so its record is kept for the skew
// longer.
func (o *Options) timesOf(op *operation, id store.ID) Times {
	t := o.times(op)
	if _, timed := id.Time(); timed && op.keyTime != nil {
		t.Retention += op.skew
	}
	return t
}

// firstLease is the lease of a claim: at most max run.
func (t Times) firstLease() time.Duration {
	if t.MaxRun > 0 {
		return min(t.Lease, t.MaxRun)
	}
	return t.Lease
}

// emitter sends events to the Observer. Without one it logs the alarms, because an
// operator must act on them.
type emitter struct{ observer event.Observer }

func (o emitter) observe(ctx context.Context, e event.Event) {
	switch {
	case o.observer != nil:
		o.observer.Observe(ctx, e)
	case e.Alarm():
		event.Slog(slog.Default()).Observe(ctx, e)
	}
}

// emit emits an event about a record.
func (o emitter) emit(ctx context.Context, kind event.Kind, r store.Record, err error) {
	o.observe(ctx, event.Event{Kind: kind, Operation: r.Operation, ID: r.ID, Attempt: r.Attempt, State: r.State, Err: err})
}
