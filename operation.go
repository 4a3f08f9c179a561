package semel

import (
	"time"

	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
)

// Operation is a named unit of work. Define it once, as a package variable.
//
// Its method Call makes a call of it, with a key in a scope. A key has 1 to 255 bytes,
// which are compared one by one. An invalid scope, key or input is a *FieldError of
// the function that takes the Call. An input is invalid if JSON loses a part of it: a
// string that is not valid UTF-8, a field that is set and not exported, or a value
// that changes when it is encoded and decoded. Name returns its name. CallAt and Input
// are for adapters and workers.
type Operation[In any] = engine.Operation[In]

// Declared is any [Operation].
type Declared = engine.Declared

// Define defines an operation. A name has 1 to 255 visible ASCII characters. It is
// stored with each record: renaming an operation loses the records of its keys.
// Wrong options are reported by the first call, and by [New] for the operations it
// is given.
func Define[In any](name string, o OperationOptions[In]) *Operation[In] {
	return engine.Define(name, engine.OperationOptions[In](o))
}

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

// OnError says what happens after an error with proof that nothing was committed.
type OnError = engine.OnError

const (
	// Release lets a retry run the operation again: no record remains, or a Pending
	// one.
	Release = engine.Release
	// Keep stores the failure. The key has failed for good; a new try needs a new
	// key.
	Keep = engine.Keep
)

// Fingerprinter is an input, or the value of a function of Fingerprints, that
// chooses the bytes of its fingerprint: AppendFingerprint appends them to b. Two
// requests are the same if they append the same bytes, so their parts must be
// separated, for example by their lengths. A struct that embeds a Fingerprinter is
// one, too: its other fields have no influence unless it has an AppendFingerprint
// of its own. Other inputs are compared by their JSON. Struct fields with their
// zero value and the order of fields do not matter, so a field that a later program
// version adds does not change earlier fingerprints. A pointer to a zero value is
// not the zero value, and the keys of a map are not fields.
type Fingerprinter = engine.Fingerprinter

// Retry defines how an operation is retried whose keys the system owns: tasks and
// messages, whose callers do not wait for an answer. It applies to every attempt of
// the operation. The zero value has good defaults.
//
//   - MaxErrors is how many attempts may end in an error. Then the record becomes
//     Failed, or InDoubt if an effect is possible. A transaction that is interrupted
//     while the function runs counts as an error, and so does a timeout of the
//     attempt. An unavailable store and the end of the process do not count. Zero: 10.
//   - MaxCrashes is how many attempts may crash, counted apart from the errors. An
//     attempt that is a single transaction leaves nothing after a crash, so it is not
//     counted. Zero: 3.
//   - DeadLetterRetention is how long a dead letter that has Failed is kept. Zero: for
//     ever, until an operator handles it. A dead letter that is InDoubt is never purged.
//     The operation's Retention does not apply to dead letters.
//   - Redelivered means that the caller retries by itself, as a broker redelivers a
//     message. The record then does not store the input, no worker runs it, and it
//     cannot be enqueued. Without Redelivered, a call that has not ended, enqueued or
//     direct, is continued by a worker with its stored input.
//   - Delay returns the delay of the next attempt after n errors. Nil: exponential
//     backoff with jitter: a second, doubled with each error, at most an hour, times a
//     random factor of one half to one and a half.
type Retry = engine.Retry

// UUIDv7Time returns the time in a UUID of version 7 (RFC 9562), for
// OperationOptions.KeyTime.
func UUIDv7Time(key string) (time.Time, bool) {
	return engine.UUIDv7Time(key)
}

// ULIDTime returns the time in a ULID, for OperationOptions.KeyTime.
func ULIDTime(key string) (time.Time, bool) {
	return engine.ULIDTime(key)
}

// Raw is a result that is stored and returned byte for byte. Other results are
// stored as encoding/json encodes them.
type Raw = codec.Raw
