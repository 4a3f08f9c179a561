package inbox

import (
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Mode says how the handling of a message shares its fate with the record.
type Mode uint8

const (
	// Pessimistic handles in one transaction with the record, after taking the
	// right to it: of deliveries at the same time one is handled, and the others
	// are told at once to come again.
	Pessimistic Mode = iota
	// Optimistic handles in one transaction with the record, and finds out with
	// its last statement whether another delivery was first: then all of it is
	// rolled back, and the delivery is answered as a duplicate. It spares a
	// statement where deliveries at the same time are rare.
	Optimistic
	// Leased commits a claim first, and handles then, with heartbeats: for
	// effects outside of the record's database. What happens to a message whose
	// consumer died is the Policy.
	Leased
)

// String returns the mode's name.
func (m Mode) String() string {
	switch m {
	case Pessimistic:
		return "Pessimistic"
	case Optimistic:
		return "Optimistic"
	case Leased:
		return "Leased"
	default:
		return "Mode(?)"
	}
}

// Options says how messages are handled. Group is required; the rest of the zero
// value is good.
type Options[In any] struct {
	// Group is the consumer group, in at most 1000 bytes: a message is handled
	// once in each. Renaming it forgets what was handled.
	Group string
	// Mode is how the handling shares its fate with the record.
	Mode Mode
	// Policy is, in the mode Leased, what happens to a message whose consumer
	// died, or whose handler cannot tell what it did. Unset: Hold. Atomic is for
	// long handlers whose effect is in the record's database: it needs a Lease.
	Policy semel.Policy
	// Classify may say NotCommitted, in the mode Leased, for errors it knows; see
	// semel.OperationOptions.
	Classify func(error) store.Verdict
	// Lease is, in the mode Leased, how long a consumer may be silent before
	// others may take its message over. Zero: the engine's.
	Lease time.Duration
	// Heartbeat is, in the mode Leased, how often the lease is renewed. Zero: a
	// third of the Lease.
	Heartbeat time.Duration
	// MaxRun is the longest the handling of a message may take. Zero: the
	// engine's.
	MaxRun time.Duration
	// Retry says how often a message is tried before it is poison, and how long
	// it stays away each time. Its Redelivered is always set: the broker has the
	// payload, and no record keeps it.
	Retry semel.Retry
	// Wait is how long a delivery waits for another of the same message that is
	// being handled, before it is to come again. Zero: the engine's.
	Wait time.Duration
	// Retention is how long it is remembered that a message was handled: longer
	// than the longest redelivery. Zero: the engine's.
	Retention time.Duration
	// Redelivery is how long after it first came a message may come again: by the
	// broker, from its dead letters, by hand. A Retention that is not longer is
	// refused. Zero: it is not known.
	Redelivery time.Duration
	// Fingerprints choose what of a payload must be the same in each delivery;
	// see semel.OperationOptions. None: all of it.
	Fingerprints []func(In) any
	// Time reads the time out of an ID, as semel.UUIDv7Time and semel.ULIDTime
	// do. A message without a record that is older than the Retention, or newer
	// than Skew, is then refused with semel.ErrKeyExpired.
	Time func(id string) (time.Time, bool)
	// Stamped does the same with Message.Sent, for IDs without a time. Not
	// together with Time. Setting it, or taking it away, forgets what was handled.
	Stamped bool
	// Skew is how far the clocks of producers may be off. Zero: 5 minutes.
	Skew time.Duration
	// Generation remembers messages without a time for one to two Generations,
	// and forgets them by dropping partitions; see semel.OperationOptions. Failures
	// are then told and not kept: nothing is counted, and no message becomes poison,
	// so the broker has to count. Not together with Retry, Retention, Time, Stamped
	// and the mode Leased.
	Generation time.Duration
}

// maxGroup leaves room in a scope for what is put before it.
const maxGroup = 1000

func (o *Options[In]) valid() error {
	if o.Group == "" || len(o.Group) > maxGroup {
		return invalid("Group", "must be 1 to "+strconv.Itoa(maxGroup)+" bytes")
	}
	if o.Mode > Leased {
		return invalid("Mode", "is none of Pessimistic, Optimistic and Leased")
	}
	if o.Stamped && o.Time != nil {
		return invalid("Stamped", "is given together with Time")
	}
	if o.Generation > 0 {
		return o.validGeneration()
	}
	return o.validMode()
}

// validGeneration refuses what has no meaning without kept failures; the rest is
// refused by the operation.
func (o *Options[In]) validGeneration() error {
	switch {
	case o.Mode == Leased:
		return invalid("Generation", "is not for the mode Leased")
	case o.Stamped, o.Time != nil:
		return invalid("Generation", "is for messages without a time")
	case o.Retry.MaxErrors != 0, o.Retry.MaxCrashes != 0, o.Retry.Delay != nil:
		return invalid("Retry", "is given together with Generation, which keeps no failures")
	default:
		return o.validMode()
	}
}

// validMode refuses what is for another mode.
func (o *Options[In]) validMode() error {
	if o.Mode == Leased {
		if o.atomic() && o.Lease == 0 {
			return invalid("Lease", "is required with the policy Atomic: it is what has the claim committed first")
		}
		return nil
	}
	switch {
	case o.Policy.String() != unset:
		return invalid("Policy", "is for the mode Leased")
	case o.Classify != nil:
		return invalid("Classify", "is for the mode Leased: in a transaction a rollback is proof")
	case o.Lease != 0:
		return invalid("Lease", "is for the mode Leased")
	case o.Heartbeat != 0:
		return invalid("Heartbeat", "is for the mode Leased")
	default:
		return nil
	}
}

// unset is the name of the zero policy.
const unset = "unset"

// atomic tells whether the claim commits first, and the effect with the outcome.
func (o *Options[In]) atomic() bool { return o.Policy.String() == semel.Atomic().String() }

// operation is what the options make of a semel operation.
func (o *Options[In]) operation() semel.OperationOptions[In] {
	retry := o.Retry
	retry.Redelivered = true // by the broker: no worker needs the payload
	op := semel.OperationOptions[In]{
		Policy: o.Policy, Classify: o.Classify, Lease: o.Lease, Heartbeat: o.Heartbeat, MaxRun: o.MaxRun,
		Retry: &retry, Wait: o.Wait, Retention: o.Retention, Fingerprints: o.Fingerprints, Skew: o.Skew,
		Optimistic: o.Mode == Optimistic, Redelivery: o.Redelivery, Generation: o.Generation,
	}
	if o.Generation > 0 {
		op.Retry = nil
	}
	if o.Mode == Leased && o.Policy.String() == unset {
		op.Policy = semel.Hold()
	}
	switch {
	case o.Stamped:
		op.KeyTime = stampOf
	case o.Time != nil:
		op.KeyTime = func(key string) (time.Time, bool) {
			id, ok := idOf(key)
			if !ok {
				return time.Time{}, false
			}
			return o.Time(id)
		}
	}
	return op
}
