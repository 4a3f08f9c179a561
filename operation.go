package semel

import (
	"reflect"
	"strconv"
	"time"

	"github.com/semelgo/semel/store"
)

// OperationOptions says once how an operation behaves. The zero value is good.
type OperationOptions[In any] struct {
	// Policy names what happens after a crash. Unset: Hold for [Do], inline for
	// [DoTx].
	Policy Policy
	// Lease is how long a leader may be silent before others may take over:
	// longer than the longest outage to ride out. Zero: the engine's. With
	// Policy Atomic a Lease makes [DoTx] commit its claim first.
	Lease time.Duration
	// Heartbeat is how often the lease is renewed. Zero: a third of the lease.
	Heartbeat time.Duration
	// MaxRun is the longest an attempt may go on, heartbeats or not: from the
	// maximum of what is normal, not from the mean. Zero: the engine's.
	MaxRun time.Duration
	// Retention is how long a finished record is kept at least, counted from the
	// outcome: longer than the longest redelivery. A record past it still answers until
	// it is purged. Zero: the engine's.
	Retention time.Duration
	// Wait is how long a follower waits for the leader. Zero: the engine's.
	Wait time.Duration
	// OnError says what a failure that is proven leads to.
	OnError OnError
	// Classify may say NotCommitted for errors it knows. Everything else it
	// says, and every error when it is nil, is Unknown, unless the function
	// marked it. Inside a transaction it is not asked: a rollback is proof.
	Classify func(error) store.Verdict
	// Retry is for operations whose keys the system owns, tasks and messages: how
	// they are tried again. Nil: the keys are their callers', who ask again.
	Retry *Retry
	// Optimistic runs [DoTx]'s inline transaction without taking the right to the
	// record first. Nobody is kept waiting by it: of several that run at the same
	// time one commits, and the others are rolled back and answer from the record.
	// On PostgreSQL it takes the level read committed.
	Optimistic bool
	// Fingerprints choose the fields that make it the same request; the last
	// one is used for new records, the earlier ones, by their place in the
	// list, for records of older versions of the program. Only ever append.
	// None: the whole input. What a function returns is compared as JSON without
	// the fields that have their zero value, unless it is a [Fingerprinter].
	Fingerprints []func(In) any
	// Redelivery is how long after it first came a key may come again: by the
	// retries of clients, the redeliveries of a broker, a replay by hand. A
	// retention that is not longer is refused, by [New] for the operations it is
	// given and by the first call. Zero: it is not known.
	Redelivery time.Duration
	// KeyTime reads the time out of a key, such as [UUIDv7Time]. If set, a key
	// without a record that is older than the retention or newer than Skew is
	// [ErrKeyExpired], and the time leads the ID of the record, which is kept for
	// the Skew longer.
	//
	// It must say the same of a key whenever it is asked: the key has another
	// record else, and runs again. So it never looks at a clock. The zero time,
	// with true, is that of an ordinary key, whose age does not count; false
	// refuses the key, with a *FieldError. To add a KeyTime to an operation, or
	// to change it, forgets the keys it has.
	KeyTime func(key string) (time.Time, bool)
	// Generation is for keys without a time that are to be forgotten by dropping
	// partitions. A key is remembered for one to two Generations. It is for [DoTx]
	// without a Lease only, whose transaction then writes two records, one of this
	// generation and one of the next, both with the generation's start as the time
	// of their ID. The clocks of those who ask must differ by less than half a
	// Generation, and a function that runs when it ends is rolled back and run
	// again. A failure, [Final] or not, is told and not kept. A minute at least;
	// an hour or more is sensible. Zero: the key has one record.
	Generation time.Duration
	// Skew is how far the clocks of callers may be off. Zero: 5 minutes.
	Skew time.Duration
}

// Operation is a named unit of work. Declare it once, as a package variable.
type Operation[In any] struct {
	def          operation
	fingerprints []func(In) any
	speaks       bool // In is a Fingerprinter, and so is the place of one
	form         *jsonForm
}

// operation is what the engine knows of an Operation.
type operation struct {
	name                                 string
	policy                               Policy
	lease, beat, maxRun, retention, wait time.Duration
	leaseSet                             bool
	onError                              OnError
	retry                                *Retry // with its defaults; nil: keys are callers'
	optimistic                           bool
	classify                             func(error) store.Verdict
	keyTime                              func(string) (time.Time, bool)
	skew, redelivery, generation         time.Duration
	digest                               func(version int, input any) (fingerprint, error)
	err                                  error
}

// Declared is any [Operation].
type Declared interface{ declared() *operation }

// Define declares an operation. Names are 1 to 255 visible ASCII characters and
// are stored with each record: renaming an operation forgets its keys. Wrong
// options are reported by the first call, and by [New] for the operations it is
// given.
func Define[In any](name string, o OperationOptions[In]) *Operation[In] {
	op := &Operation[In]{fingerprints: o.Fingerprints, form: jsonFormOf(reflect.TypeFor[In]())}
	_, is := any(*new(In)).(Fingerprinter)
	_, there := any(new(In)).(Fingerprinter) // not where In is a pointer itself
	op.speaks = is && there
	op.def = operation{
		name: name, policy: o.Policy, lease: o.Lease, leaseSet: o.Lease > 0, beat: o.Heartbeat,
		maxRun: o.MaxRun, retention: o.Retention, wait: o.Wait, onError: o.OnError, optimistic: o.Optimistic,
		classify: o.Classify, keyTime: o.KeyTime, skew: o.Skew, redelivery: o.Redelivery, generation: o.Generation,
	}
	if o.Retry != nil {
		retry := *o.Retry
		op.def.retry = &retry
	}
	if op.def.skew == 0 {
		op.def.skew = 5 * time.Minute
	}
	op.def.digest = op.digest
	op.def.err = op.def.valid()
	if len(o.Fingerprints) > 255 {
		op.def.err = invalid("Fingerprints", "has more than 255 versions")
	}
	return op
}

// Name returns the operation's name.
func (o *Operation[In]) Name() string { return o.def.name }

func (o *Operation[In]) declared() *operation { return &o.def }

func (o *operation) valid() error {
	if o.name == "" || len(o.name) > store.MaxOperation || !visible(o.name) {
		return invalid("Name", "must be 1 to "+strconv.Itoa(store.MaxOperation)+" visible ASCII characters")
	}
	err := notNegative(
		duration{"Lease", o.lease}, duration{"Heartbeat", o.beat}, duration{"MaxRun", o.maxRun},
		duration{"Retention", o.retention}, duration{"Wait", o.wait}, duration{"Skew", o.skew},
		duration{"Redelivery", o.redelivery}, duration{"Generation", o.generation},
	)
	if err != nil {
		return err
	}
	if o.beat > 0 && o.beat >= o.lease {
		return invalid("Heartbeat", "must be shorter than the operation's Lease")
	}
	if o.onError > Keep {
		return invalid("OnError", "is neither Release nor Keep")
	}
	if err := o.retried(); err != nil {
		return err
	}
	if err := o.generations(); err != nil {
		return err
	}
	return o.policy.valid()
}

// retried returns what is wrong with how the operation is tried again.
func (o *operation) retried() error {
	if o.optimistic && !o.inline() {
		return invalid("Optimistic", "is for operations that DoTx runs as one transaction")
	}
	if o.retry == nil {
		return nil
	}
	if o.onError == Keep {
		return invalid("Retry", "tries again what OnError Keep keeps")
	}
	return o.retry.valid()
}

// inline tells whether DoTx runs this operation as one transaction.
func (o *operation) inline() bool {
	return o.policy.kind == policyUnset || o.policy.kind == policyAtomic && !o.leaseSet
}

type duration struct {
	field string
	value time.Duration
}

func notNegative(ds ...duration) error {
	for _, d := range ds {
		if d.value < 0 {
			return invalid(d.field, "is negative: "+d.value.String())
		}
	}
	return nil
}

func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
