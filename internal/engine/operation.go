package engine

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/store"
)

// OperationOptions define how an operation behaves.
type OperationOptions[In any] struct {
	Policy       Policy
	Lease        time.Duration
	Heartbeat    time.Duration
	MaxRun       time.Duration
	Retention    time.Duration
	Wait         time.Duration
	OnError      OnError
	Classify     func(error) store.Verdict
	Retry        *Retry
	Optimistic   bool
	Fingerprints []func(In) any
	Redelivery   time.Duration
	KeyTime      func(key string) (time.Time, bool)
	Generation   time.Duration
	Skew         time.Duration
}

// Operation is a named unit of work.
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
	inline                               bool // DoTx runs it as one transaction
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

// Define defines an operation.
func Define[In any](name string, o OperationOptions[In]) *Operation[In] {
	op := &Operation[In]{fingerprints: o.Fingerprints, exact: canonical.IsExact(reflect.TypeFor[In]())}
	_, is := any(*new(In)).(Fingerprinter)
	_, there := any(new(In)).(Fingerprinter) // false if In is a pointer itself
	op.speaks = is && there
	op.def = operation{
		name: name, policy: o.Policy, lease: o.Lease, inline: !o.Policy.kind.ClaimsFirst(o.Lease > 0), beat: o.Heartbeat,
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
	if o.name == "" || len(o.name) > store.MaxOperation || strings.ContainsFunc(o.name, isInvisible) {
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
	if o.optimistic && !o.inline {
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

func isInvisible(r rune) bool { return r <= ' ' || r > '~' }

type duration struct {
	field string
	value time.Duration
}

func notNegative(ds ...duration) error {
	for _, d := range ds {
		if d.value < 0 {
			return callerr.Invalid(d.field, "is negative: "+d.value.String())
		}
	}
	return nil
}

// jitter returns a random duration between half of d and one and a half of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)+1))
}

// Retry defines how an operation is retried whose keys the system owns: tasks and
// messages, whose callers do not wait for an answer.
type Retry struct {
	MaxErrors           int
	MaxCrashes          int
	DeadLetterRetention time.Duration
	Redelivered         bool
	Delay               func(errors int) time.Duration
}

// valid sets the defaults of r and returns what is wrong with it, naming the field.
func (r *Retry) valid() error {
	switch {
	case r.MaxErrors < 0:
		return callerr.Invalid("Retry.MaxErrors", "is negative")
	case r.MaxCrashes < 0:
		return callerr.Invalid("Retry.MaxCrashes", "is negative")
	case r.DeadLetterRetention < 0:
		return callerr.Invalid("Retry.DeadLetterRetention", "is negative: "+r.DeadLetterRetention.String())
	}
	r.MaxErrors = cmp.Or(r.MaxErrors, 10)
	r.MaxCrashes = cmp.Or(r.MaxCrashes, 3)
	if r.Delay == nil {
		r.Delay = exponentialDelay
	}
	return nil
}

// exponentialDelay is the default of Delay.
func exponentialDelay(errors int) time.Duration {
	return jitter(min(time.Second<<min(max(errors-1, 0), 12), time.Hour))
}

// delay returns the delay of the next attempt after err, the n-th error.
func (r *Retry) delay(err error, errors int) time.Duration {
	if own, ok := callerr.DelayOf(err); ok {
		return own
	}
	return max(r.Delay(errors), 0)
}
