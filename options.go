package semel

import (
	"cmp"
	"slices"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// Options are the defaults of an engine's operations. The zero value has good
// defaults.
type Options struct {
	// Survive is the worst failure that must not lose records. New rejects a store
	// that survives less, and names the server's setting. Zero: store.PowerLoss.
	// A smaller one accepts the loss: an operation whose record is lost may run
	// again, and New emits the alarm event.NotDurable. The memory store needs
	// store.NoFailure. docs/operations.md says what remains of each guarantee.
	Survive store.Failure
	// Lease is how long a leader may be silent before others may take over. Zero:
	// 30 seconds.
	Lease time.Duration
	// Heartbeat is the interval of lease renewals. Zero: a third of the lease, so
	// that two may be lost.
	Heartbeat time.Duration
	// MaxRun is the longest that an attempt may run, even with heartbeats. Zero: no
	// limit.
	MaxRun time.Duration
	// Retention is the least time for which a finished record is kept, counted from
	// the outcome. It must be longer than RecordTimeout. A record past it still
	// answers until it is purged. Zero: 24 hours.
	Retention time.Duration
	// Wait is how long a follower waits for the leader before it gets
	// ErrInProgress. Zero: followers get it at once.
	Wait time.Duration
	// MaxWaiters is the largest number of waiting followers; further followers get
	// ErrInProgress at once. Zero: 1000.
	MaxWaiters int
	// RecordTimeout limits each round trip to the store, including the wait in a
	// queue and for a connection. For a claim and for the begin of a transaction
	// the caller's context is a second limit; for writing an outcome it is not. A
	// call whose transaction does not begin in time is ErrUnavailable, and its
	// function is not called. Zero: 5 seconds.
	RecordTimeout time.Duration
	// MaxQueued is the largest number of claims, and of reads, that wait to be sent
	// to the store. Further calls are ErrUnavailable, and nothing of them is sent.
	// Outcomes are never refused. Zero: 10,000.
	MaxQueued int
	// CacheBytes is the approximate memory that this engine uses to answer retries
	// of final records without the store. Zero: no cache. A final record changes
	// only when it is purged, or when an operator redrives it: callers of an engine
	// with a cache may see that up to CacheAge later.
	CacheBytes int
	// CacheAge is how long a final record is cached. Zero: 1 second.
	CacheAge time.Duration
	// MaxUnrecorded is the largest number of unrecorded outcomes that are kept and
	// retried. Zero: 1000. Negative: none; their leases then decide.
	MaxUnrecorded int
	// Operations are the operations of this program whose records the engine may
	// change without a call: Sweep settles records of crashed processes, workers
	// run tasks, and Redrive accepts failed tasks and messages. Sweep and workers
	// do not touch records of other operations. A call does not require its
	// operation to be listed. New reports a wrong definition, and two definitions
	// of one name. A call of another definition of a listed name is ErrInvalid.
	Operations []Declared
	// Clock is the clock for times in keys. Nil: the process's clock.
	Clock func() time.Time
	// Observer receives the engine's events. Nil: none.
	Observer event.Observer
	// Journal keeps unrecorded outcomes across restarts of the process, in a file for
	// instance: see package journal. Nil: they
	// are kept in memory only.
	Journal Journal
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
	if o.Survive > store.PowerLoss {
		return callerr.Invalid("Survive", "is not a failure that package store knows")
	}
	o.Survive = cmp.Or(o.Survive, store.PowerLoss)
	setDefault(&o.Lease, 30*time.Second)
	setDefault(&o.Retention, defaultRetention)
	setDefault(&o.MaxWaiters, 1000)
	setDefault(&o.MaxQueued, 10_000)
	setDefault(&o.RecordTimeout, 5*time.Second)
	setDefault(&o.MaxUnrecorded, 1000)
	setDefault(&o.CacheAge, time.Second)
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
