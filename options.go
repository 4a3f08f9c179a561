package semel

import (
	"cmp"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Options sets what operations do not say themselves. The zero value is good.
type Options struct {
	// Survive is the worst failure that must not lose records. New rejects a store
	// that survives less, and names the server's setting. Zero: store.PowerLoss.
	// A smaller one accepts the loss: an operation whose record is lost may run
	// again, and New emits the alarm EventNotDurable. The memory store needs
	// store.NoFailure. docs/operations.md says what remains of each guarantee.
	Survive store.Failure
	// Lease is how long a leader may be silent before others may take over.
	// Zero: 30 seconds.
	Lease time.Duration
	// Heartbeat is how often a lease is renewed. Zero: a third of the lease, so
	// that two may be lost.
	Heartbeat time.Duration
	// MaxRun is the longest an attempt may go on, heartbeats or not. Zero: no
	// limit.
	MaxRun time.Duration
	// Retention is how long a finished record is kept at least, counted from the
	// outcome: longer than RecordTimeout. A record past it still answers until it is
	// purged. Zero: 24 hours.
	Retention time.Duration
	// Wait is how long a follower waits for the leader before it is told
	// ErrInProgress. Zero: followers are answered at once.
	Wait time.Duration
	// MaxWaiters is the most followers that wait at a time; the others are
	// answered at once. Zero: 1000.
	MaxWaiters int
	// RecordTimeout bounds each asking of the store, with the wait for those that
	// go before it and for a connection: a claim and the beginning of a transaction,
	// together with the caller's context, and the writing of one outcome, whatever became
	// of the caller's context. A call whose transaction does not begin in time is refused
	// with ErrUnavailable, and its function is not called. Zero: 5 seconds.
	RecordTimeout time.Duration
	// MaxQueued is the most claims, and the most reads, that wait to be sent to the
	// store. Those that come then are refused with ErrUnavailable, and nothing of
	// them is sent. Outcomes are never refused. Zero: 10,000.
	MaxQueued int
	// CacheBytes is how much memory this engine uses, roughly, to answer repeats of
	// what is final without asking the store. Zero: none; each repeat is answered
	// from the store. What is final changes only when it is purged, or redriven by
	// a person: callers of an engine with a cache may learn that as much as
	// CacheAge later, and are told until then what stood.
	CacheBytes int
	// CacheAge is how long a final record is told from memory. Zero: 1 second.
	CacheAge time.Duration
	// MaxUnrecorded is the most outcomes that could not be recorded and are kept to
	// be tried again. Zero: 1000. Less than zero: none; the lease decides then.
	MaxUnrecorded int
	// Operations are the operations of this program whose records the engine may change
	// without being called for them: Sweep frees what crashed processes left of them,
	// workers run their tasks, and Redrive accepts their failed tasks and messages. Sweep
	// and workers leave the records of all other operations alone. A call does not need
	// its operation to be among them. New reports a wrong definition, and two definitions
	// of one name. A call of another definition of one of these names is ErrInvalid.
	Operations []Declared
	// Clock is what times in keys are compared with. Nil: the process's clock.
	Clock func() time.Time
	// Observer is told what the engine sees. Nil: nobody is.
	Observer Observer
	// Journal keeps what could not be recorded across restarts of the process.
	// Nil: it is kept in memory only.
	Journal Journal
}

// defaultRetention is that of an engine whose Options do not say one. Records of calls that
// wait for a worker do not repeat it.
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
			return invalid(n.field, "is negative")
		}
	}
	if o.Survive > store.PowerLoss {
		return invalid("Survive", "is not a failure that package store knows")
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
		o.Clock = now
	}
	if o.Heartbeat >= o.Lease {
		return invalid("Heartbeat", "must be shorter than Lease")
	}
	for i, op := range o.Operations {
		if op == nil {
			return invalid("Operations", "has a nil entry")
		}
		if slices.ContainsFunc(o.Operations[:i], func(other Declared) bool {
			return other.declared().name == op.declared().name && other.declared() != op.declared()
		}) {
			return invalid("Operations", "has two definitions of "+op.declared().name)
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

// outlived checks that a record is kept for longer than its own leader may go
// on asking what became of it, and than its key may come again: one that was
// purged meanwhile would tell that nothing had happened.
func (o *Options) outlived(op *operation) error {
	switch keep := cmp.Or(op.retention, o.Retention); {
	case keep <= o.RecordTimeout:
		return invalid("Retention", "must be longer than RecordTimeout, "+o.RecordTimeout.String()+"; it is "+keep.String())
	case op.generation > 0 && op.generation <= op.redelivery:
		return invalid("Generation", "must be longer than Redelivery, "+op.redelivery.String()+"; it is "+op.generation.String())
	case keep <= op.redelivery:
		return invalid("Retention", "must be longer than Redelivery, "+op.redelivery.String()+"; it is "+keep.String())
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// times are the durations one call runs with.
type times struct {
	lease, beat, maxRun, retention, wait time.Duration
}

// times joins what the operation says with what the engine says.
func (o *Options) times(op *operation) (t times) {
	t.join(o, op)
	return t
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

// either is cmp.Or of two, which each call waits for.
func either(d, otherwise time.Duration) time.Duration {
	if d != 0 {
		return d
	}
	return otherwise
}

// timesOf are the times that the record of id has. A key with a time in it, from a
// clock that is ahead, is young for that much longer: it must not outlive its
// record.
func (o *Options) timesOf(op *operation, id store.ID) (t times) {
	t.of(o, op, id)
	return t
}

// of makes of t, where it is, what timesOf returns.
func (t *times) of(o *Options, op *operation, id store.ID) {
	t.join(o, op)
	if op.keyTime == nil {
		return
	}
	if _, timed := id.Time(); timed {
		t.retention += op.skew
	}
}
