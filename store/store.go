package store

import (
	"context"
	"errors"
)

// Store keeps records. All methods may be called concurrently.
type Store interface {
	// Swap applies each change on its own: durably, atomically, and in one
	// round trip where the database can. Answers come in the order of the
	// changes, one each.
	//
	// The changes name each ID at most once, and are not more than MaxBatch. A
	// batch that is otherwise fails as a whole, and nothing of it is written;
	// the error tells the ID that comes twice. A change that cannot be kept is
	// refused by itself, with an Err that names the field: a create whose
	// Operation, Scope or Key is longer than a store must keep, an Input or
	// Outcome above MaxOutcome, a State that no record stands in.
	//
	// Swap may be called again with the same changes: the answer is the same
	// and nothing happens twice. On a non-nil error nothing is known: any of
	// the changes may be in force, or may yet come in force.
	//
	// When Swap has returned without an error, the slice of changes is the caller's
	// again, who may use it for others.
	//
	// Swap never waits long for one record: that one answers Busy, and neither
	// a busy nor a refused record delays or fails its neighbours.
	Swap(ctx context.Context, changes []Change) ([]SwapResult, error)

	// Get reads what stands, from where Swap writes: never from a replica. It
	// answers in the order of ids; an ID without a record has the zero Token.
	Get(ctx context.Context, ids []ID) ([]SwapResult, error)

	// Scan lists records. It may miss or repeat some while others write: what
	// it gives is a hint, Swap decides.
	Scan(ctx context.Context, q Query) ([]Record, error)

	// Purge removes at most limit records whose Expire has come, and returns
	// how many went. The condition holds on the row at the moment it goes, so
	// a record that was claimed again meanwhile stays. InProgress and InDoubt
	// never go.
	Purge(ctx context.Context, limit int) (int, error)

	// Capabilities says what the store can promise, read from the server where
	// it can be. It fails when the server does not answer.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// TxStore is a Store whose records can share a transaction with the domain's
// own rows.
type TxStore[Tx any] interface {
	Store

	// Atomic begins a transaction and calls run in it, once.
	//
	// With hold it first takes, until the transaction ends, the only right to
	// the record id that is given with hold; if somebody else has it, run is
	// told Busy at once. The right is politeness towards others: a Swap of id
	// meanwhile either answers Busy, or comes in force and fails the
	// transaction's last change. run is told what stands, read within the
	// transaction.
	//
	// What run returns decides the end:
	//   - (nil, err): roll back, return err with NotCommitted, or Unknown if
	//     not even that can be said;
	//   - (change, nil): apply the change as the last statement and commit. A
	//     change that does not come in force by this very statement fails the
	//     transaction inside the database, so that no commit can overtake it:
	//     the error is ErrSuperseded, with NotCommitted. A change that stands
	//     already fails it too, or the effect would be committed twice;
	//   - (change, err): undo what run did and, keeping the right to the record
	//     where the store can, apply the change and commit. The error returned
	//     speaks of the change alone;
	//   - (nil, nil): commit what run did, and change no record.
	//
	// A transaction that the database gave up in favour of others, and one whose
	// run met such an error, is rolled back whole, whatever run returned: the
	// error is ErrConflict, with NotCommitted. So is one that was broken off, or
	// met a statement that was and that run did not undo: ErrInterrupted. One that run ended itself is ErrTxEndedByHandler.
	//
	// The verdict says whether the transaction committed; it is Committed when
	// the error is nil. A panic or runtime.Goexit in run rolls back and goes on.
	// The transaction does not end when ctx does: run decides. The commit has
	// a bound of its own, and when it passes the verdict is Unknown.
	//
	// run may leave a goroutine behind that goes on with the transaction. What
	// it still writes is committed with the rest or not at all, and nothing of
	// it beside a failure that is kept; once Atomic has returned it is refused.
	Atomic(ctx context.Context, id ID, hold bool,
		run func(ctx context.Context, tx Tx, stands SwapResult) (*Change, error)) (Verdict, error)

	// SwapTx is Swap within a transaction that the caller owns and ends.
	SwapTx(ctx context.Context, tx Tx, changes []Change) ([]SwapResult, error)
}

// ErrSuperseded says that something else stood than the last change of a
// transaction asked for, so that the transaction was rolled back.
var ErrSuperseded = errors.New("semel/store: something else stands")

// ErrConflict says that the database has given up a transaction because of what
// others did at the same time, as with a serialization failure or a deadlock. The
// transaction was rolled back, with NotCommitted; run once more it may succeed.
var ErrConflict = errors.New("semel/store: in conflict with another transaction")

// ErrInterrupted says that a transaction, or a statement in it, was broken off from
// outside: its connection was lost, the server shut down or ran out of something,
// a time was over. Nothing was committed. It is nobody's answer: what run said of
// it is not kept.
var ErrInterrupted = errors.New("semel/store: broken off")

// ErrTxEndedByHandler says that run ended the transaction itself, so that what it wrote may
// have been committed apart from the record, and no change of the record can
// prove what became of it. The verdict says what was found out.
var ErrTxEndedByHandler = errors.New("semel/store: ended by its own function")

// ErrNoPartition is the Err of a create whose ID the store has no room for: its time
// is outside of what the table is partitioned for, because that partition was
// dropped or is not there yet. Nothing was written. The engine tells by the key's own
// time which of them it is.
var ErrNoPartition = errors.New("semel/store: no partition for the record's time")

// Verdict says what is known about an effect.
type Verdict uint8

const (
	// Unknown is the zero Verdict: it may or may not have happened.
	Unknown Verdict = iota
	// Committed means that it happened, durably.
	Committed
	// NotCommitted means that it did not happen, and cannot happen later.
	NotCommitted
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Committed:
		return "Committed"
	case NotCommitted:
		return "NotCommitted"
	case Unknown:
		return "Unknown"
	default:
		return "Verdict(?)"
	}
}

// Capabilities is what a store can promise.
type Capabilities struct {
	// SameTx: records share transactions with the domain's rows.
	SameTx bool
	// Linearizable: what one caller was told, every later caller sees.
	Linearizable bool
	// Survives is the worst failure that takes back no change that was reported as
	// applied, with the settings that were in effect when it was read.
	Survives Failure
	// Because says why Survives is less than PowerLoss. It names the setting, its
	// value and where it is set ("synchronous_commit is off (set with ALTER ROLE for
	// this role)") and becomes a part of errors. Empty with PowerLoss.
	Because string
	// Connections identifies the pool that transactions take their connections from,
	// such as a *pgxpool.Pool. It must be comparable with ==, and is equal for all stores
	// over one pool. The engine begins no transaction within the context of another one
	// of the same Connections: the second could wait for a connection that the first one
	// holds. Nil: the engine compares only itself.
	Connections any
	// Exclusive: an open Atomic transaction keeps every other writer out, so
	// that nobody can take over from within it.
	Exclusive bool
	// Flushers is how many Swaps, of the changes of many callers each, the store
	// is quickest with at the same time. Zero: a Swap costs no more than a call,
	// so nothing is gained by making changes together.
	Flushers int
	// MaxOutcome is the largest outcome kept, in bytes.
	MaxOutcome int
	// MaxBatch is the most changes one Swap takes.
	MaxBatch int
}

// Query chooses records for Scan.
type Query struct {
	State     State  // Absent: any
	Operation string // empty: any
	// Due asks only for Pending and InProgress records whose Due has come,
	// oldest first. Otherwise records come in the order of their IDs.
	Due bool
	// After asks only for IDs above it, to go on where a page ended. Not used
	// with Due.
	After ID
	// Skip passes over that many of the first, to see what is behind those that
	// the asker cannot do anything about.
	Skip int
	// Limit is the most records given: 1 to 1000; zero means 100.
	Limit int
}

// DefaultLimit and MaxLimit bound one page of a Scan.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// PageSize returns how many records one page of q may hold.
func (q Query) PageSize() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}
