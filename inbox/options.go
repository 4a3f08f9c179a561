package inbox

import (
	"strconv"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Mode defines how the effect of a message and its record commit.
type Mode uint8

const (
	// Pessimistic handles the message in the record's transaction, after it has
	// taken the exclusive right to the record. Of concurrent deliveries one is
	// handled; the others get Redeliver at once.
	Pessimistic Mode = iota
	// Optimistic handles the message in the record's transaction, and detects
	// with the last statement whether another delivery was first. In that case
	// the transaction is rolled back, and the delivery gets the result of a
	// duplicate. It saves one statement where concurrent deliveries are rare.
	Optimistic
	// Leased commits a claim first and then handles the message, with
	// heartbeats. It is for effects outside the record's database. The Policy
	// decides what happens to a message after its consumer died.
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

// Options configure an [Inbox]. Group is required; the zero value of the other
// fields is valid.
type Options[In any] struct {
	// Group is the consumer group, at most 1000 bytes. Each group handles a
	// message once. A new name starts without the records of the old one.
	Group string
	// Mode defines how the effect and the record commit.
	Mode Mode
	// Policy defines, in the mode Leased, what happens to a message after its
	// consumer died or its handler returned an Unknown error. Zero means Hold.
	// Atomic is for long handlers with their effect in the record's database;
	// it requires a Lease.
	Policy semel.Policy
	// Classify returns, in the mode Leased, NotCommitted for known errors; see
	// semel.OperationOptions.
	Classify func(error) store.Verdict
	// Lease is, in the mode Leased, the time without a heartbeat after which
	// another consumer may take a message over. Zero means the engine's lease.
	Lease time.Duration
	// Heartbeat is, in the mode Leased, the interval at which the lease is
	// renewed. Zero means a third of the Lease.
	Heartbeat time.Duration
	// MaxRun is the upper bound for one attempt. Zero means the engine's.
	MaxRun time.Duration
	// Retry defines how often a message is tried before it is poison, and the
	// delays between the tries. Its Redelivered is always set, because the
	// broker keeps the payload and the record does not.
	Retry semel.Retry
	// Wait is how long a delivery waits while another delivery of the same
	// message is handled, before the result is Redeliver. Zero means the
	// engine's.
	Wait time.Duration
	// Retention is how long the record of a handled message is kept. It must be
	// longer than the latest possible redelivery. Zero means the engine's.
	Retention time.Duration
	// Redelivery is the longest time after its first delivery at which a
	// message may be delivered again, by the broker, from the dead letters or
	// by hand. New rejects a Retention that is not longer. Zero means that it
	// is not known.
	Redelivery time.Duration
	// Fingerprints select the parts of a payload that must be the same in each
	// delivery; see semel.OperationOptions. None means the whole payload.
	Fingerprints []func(In) any
	// Time extracts the time from an ID, for example semel.UUIDv7Time or
	// semel.ULIDTime. A message without a record is then rejected with
	// semel.ErrKeyExpired if it is older than the Retention or further in the
	// future than Skew.
	Time func(id string) (time.Time, bool)
	// Stamped does the same with Message.Sent, for IDs without a time. It
	// cannot be combined with Time. An inbox whose Stamped is changed starts
	// without its earlier records.
	Stamped bool
	// Skew is the largest clock difference of producers. Zero means 5 minutes.
	Skew time.Duration
	// Generation keeps the records of messages without a time for one to two
	// Generations, and removes them by dropping partitions; see
	// semel.OperationOptions. Failures are then reported and not stored: errors
	// are not counted, and no message becomes poison, so the broker has to
	// count. It cannot be combined with Retry, Retention, Time, Stamped and the
	// mode Leased.
	Generation time.Duration
}

// maxGroup leaves room in a scope for its prefix.
const maxGroup = 1000

func (o *Options[In]) valid() error {
	if o.Group == "" || len(o.Group) > maxGroup {
		return invalid("Group", "must be 1 to "+strconv.Itoa(maxGroup)+" bytes")
	}
	if o.Mode > Leased {
		return invalid("Mode", "is not one of Pessimistic, Optimistic and Leased")
	}
	if o.Stamped && o.Time != nil {
		return invalid("Stamped", "cannot be combined with Time")
	}
	if o.Generation > 0 {
		return o.validGeneration()
	}
	return o.validMode()
}

// validGeneration rejects options that make no sense without stored failures.
// The operation rejects the rest.
func (o *Options[In]) validGeneration() error {
	switch {
	case o.Mode == Leased:
		return invalid("Generation", "is not for the mode Leased")
	case o.Stamped, o.Time != nil:
		return invalid("Generation", "is for messages without a time")
	case o.Retry.MaxErrors != 0, o.Retry.MaxCrashes != 0, o.Retry.Delay != nil:
		return invalid("Retry", "cannot be combined with Generation, which stores no failures")
	default:
		return o.validMode()
	}
}

// validMode rejects options that belong to another mode.
func (o *Options[In]) validMode() error {
	if o.Mode == Leased {
		if o.atomic() && o.Lease == 0 {
			return invalid("Lease", "is required with the policy Atomic: only with a lease does the claim commit first")
		}
		return nil
	}
	switch {
	case !o.Policy.IsZero():
		return invalid("Policy", "is for the mode Leased")
	case o.Classify != nil:
		return invalid("Classify", "is for the mode Leased: in a transaction a rollback proves that nothing was committed")
	case o.Lease != 0:
		return invalid("Lease", "is for the mode Leased")
	case o.Heartbeat != 0:
		return invalid("Heartbeat", "is for the mode Leased")
	default:
		return nil
	}
}

// atomic reports whether the claim commits first, and later the effect with the
// outcome.
func (o *Options[In]) atomic() bool { return o.Policy.IsAtomic() }

// operation returns the options of the inbox's operation.
func (o *Options[In]) operation() semel.OperationOptions[In] {
	retry := o.Retry
	retry.Redelivered = true // the broker redelivers: the record need not keep the payload
	op := semel.OperationOptions[In]{
		Policy: o.Policy, Classify: o.Classify, Lease: o.Lease, Heartbeat: o.Heartbeat, MaxRun: o.MaxRun,
		Retry: &retry, Wait: o.Wait, Retention: o.Retention, Fingerprints: o.Fingerprints, Skew: o.Skew,
		Optimistic: o.Mode == Optimistic, Redelivery: o.Redelivery, Generation: o.Generation,
	}
	if o.Generation > 0 {
		op.Retry = nil
	}
	if o.Mode == Leased && o.Policy.IsZero() {
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
