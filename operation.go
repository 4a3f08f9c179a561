package semel

import (
	"reflect"
	"strconv"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/store"
)

// OperationOptions define how an operation behaves. The zero value has good
// defaults.
type OperationOptions[In any] struct {
	// Policy is what happens after a crash. Unset: Hold for [Do], one transaction
	// for [DoTx].
	Policy Policy
	// Lease is how long a leader may be silent before others may take over: choose
	// it longer than the longest outage that an attempt must survive. Zero: the
	// engine's. With Policy Atomic, a Lease makes [DoTx] commit its claim first.
	Lease time.Duration
	// Heartbeat is the interval of lease renewals. Zero: a third of the lease.
	Heartbeat time.Duration
	// MaxRun is the longest that an attempt may run, even with heartbeats: choose
	// it by the maximum of normal runs, not by the mean. Zero: the engine's.
	MaxRun time.Duration
	// Retention is the least time for which a finished record is kept, counted from
	// the outcome: choose it longer than the last possible retry. A record past it
	// still answers until it is purged. Zero: the engine's.
	Retention time.Duration
	// Wait is how long a follower waits for the leader. Zero: the engine's.
	Wait time.Duration
	// OnError is what happens after a failure with proof that nothing was
	// committed.
	OnError OnError
	// Classify may return NotCommitted for errors that prove it. Any other verdict
	// means Unknown, and so does every error if Classify is nil, unless the
	// function marked it. Inside a transaction it is not called, because a rollback
	// is proof.
	Classify func(error) store.Verdict
	// Retry is for operations whose keys the system owns, tasks and messages: how
	// they are retried. Nil: callers own the keys, and retry themselves.
	Retry *Retry
	// Optimistic runs [DoTx]'s transaction without taking the exclusive right to
	// the record first. Concurrent callers of a key do not wait: one transaction
	// commits, and the others are rolled back and answer from the record. On
	// PostgreSQL it uses the level read committed.
	Optimistic bool
	// Fingerprints choose the fields that decide whether two requests are the same.
	// New records use the last function; records of older program versions use
	// earlier ones, by their index. So only ever append. None: the whole input. The
	// value of a function is compared as JSON without fields that have their zero
	// value, unless it is a [Fingerprinter].
	Fingerprints []func(In) any
	// Redelivery is how long after its first use a key may be used again: by
	// retries of clients, redeliveries of a broker, a replay by hand. A shorter
	// retention is refused, by [New] for the operations it is given and by the
	// first call. Zero: not known.
	Redelivery time.Duration
	// KeyTime returns the time in a key, for example [UUIDv7Time]. If it is set, a
	// key without a record that is older than the retention, or more than Skew in
	// the future, is [ErrKeyExpired]. The ID of the record begins with the time,
	// and the record is kept for the Skew longer.
	//
	// KeyTime must always return the same time for a key, because a key with
	// another time has another record, and runs again. So it must not use a clock.
	// The zero time, with true, means a key without a time, which never expires;
	// false refuses the key with a *FieldError. Adding or changing the KeyTime of
	// an operation loses the records of its keys.
	KeyTime func(key string) (time.Time, bool)
	// Generation is for keys without a time whose records are removed by dropping
	// partitions. A key is remembered for one to two Generations. It is for [DoTx]
	// without a Lease only: the transaction writes two records, one for the current
	// generation and one for the next, whose IDs begin with the start of the
	// generation. The callers' clocks must differ by less than half a Generation. A
	// function that is running when its generation ends is rolled back and run
	// again. Failures, also [Final] ones, are returned and not stored. The minimum
	// is a minute; an hour or more is sensible. Zero: the key has one record.
	Generation time.Duration
	// Skew is the largest error of callers' clocks. Zero: 5 minutes.
	Skew time.Duration
}

// Operation is a named unit of work. Define it once, as a package variable.
type Operation[In any] struct {
	def          operation
	fingerprints []func(In) any
	speaks       bool // In, or a pointer to it, is a Fingerprinter
	exact        bool // JSON loses nothing of an input
}

// operation is an Operation without its type parameter.
type operation struct {
	name                                 string
	policy                               Policy
	lease, beat, maxRun, retention, wait time.Duration
	leaseSet                             bool
	onError                              OnError
	retry                                *Retry // with its defaults; nil: callers own the keys
	optimistic                           bool
	classify                             func(error) store.Verdict
	keyTime                              func(string) (time.Time, bool)
	skew, redelivery, generation         time.Duration
	digest                               func(version int, input any) (fingerprint, error)
	err                                  error
}

// Declared is any [Operation].
type Declared interface{ declared() *operation }

// Define defines an operation. A name has 1 to 255 visible ASCII characters. It is
// stored with each record: renaming an operation loses the records of its keys.
// Wrong options are reported by the first call, and by [New] for the operations it
// is given.
func Define[In any](name string, o OperationOptions[In]) *Operation[In] {
	op := &Operation[In]{fingerprints: o.Fingerprints, exact: canonical.IsExact(reflect.TypeFor[In]())}
	_, is := any(*new(In)).(Fingerprinter)
	_, there := any(new(In)).(Fingerprinter) // false if In is a pointer itself
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
		op.def.err = callerr.Invalid("Fingerprints", "has more than 255 versions")
	}
	return op
}

// Name returns the operation's name.
func (o *Operation[In]) Name() string { return o.def.name }

func (o *Operation[In]) declared() *operation { return &o.def }

func (o *operation) valid() error {
	if o.name == "" || len(o.name) > store.MaxOperation || !visible(o.name) {
		return callerr.Invalid("Name", "must be 1 to "+strconv.Itoa(store.MaxOperation)+" visible ASCII characters")
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
		return callerr.Invalid("Heartbeat", "must be shorter than the operation's Lease")
	}
	if o.onError > Keep {
		return callerr.Invalid("OnError", "is neither Release nor Keep")
	}
	if err := o.retried(); err != nil {
		return err
	}
	if err := o.generations(); err != nil {
		return err
	}
	return o.policy.valid()
}

// retried validates the options about retries.
func (o *operation) retried() error {
	if o.optimistic && !o.inline() {
		return callerr.Invalid("Optimistic", "is for operations that DoTx runs as one transaction")
	}
	if o.retry == nil {
		return nil
	}
	if o.onError == Keep {
		return callerr.Invalid("Retry", "tries again what OnError Keep keeps")
	}
	return o.retry.valid()
}

// inline reports whether DoTx runs this operation as one transaction.
func (o *operation) inline() bool {
	return !o.policy.kind.ClaimsFirst(o.leaseSet)
}

func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
