package store

import (
	"context"
	"errors"
)

// Store keeps records. All methods may be called concurrently.
type Store interface {
	// Swap applies each change on its own: durably, atomically, and in one round
	// trip if possible. It returns one result for each change, in the same order.
	//
	// The changes have different IDs, are at most MaxBatch, and have at most MaxBytes
	// of inputs and outcomes. Otherwise the whole batch fails and nothing is written;
	// the error names the duplicate ID, or is ErrTooManyBytes. An
	// invalid change has a result with an Err that names the field: a create with
	// an Operation, Scope or Key longer than a store must keep, an Input or Outcome
	// above MaxOutcome, or an invalid State.
	//
	// Repeating a Swap with the same changes has the same results, and no further
	// effect. After an error nothing is known: any of the changes may have been
	// applied, or may be applied later.
	//
	// After Swap has returned without an error, the caller may reuse the slice of
	// changes.
	//
	// Swap never waits long for a record: the result is then Busy. Neither a busy
	// nor a refused change delays or fails the others.
	Swap(ctx context.Context, changes []Change) ([]SwapResult, error)

	// Get reads the current records from the node that Swap writes to, and never
	// from a replica. It returns one result for each ID, in the same order; an ID
	// without a record has the zero Token.
	Get(ctx context.Context, ids []ID) ([]SwapResult, error)

	// Scan lists records. It may miss or repeat some while other callers write: its
	// results are hints, and Swap decides.
	Scan(ctx context.Context, q Query) ([]Record, error)

	// Purge removes at most limit expired records, and returns how many it removed.
	// It checks the condition when it removes the row, so a record that was claimed
	// meanwhile stays. It never removes InProgress and InDoubt records.
	Purge(ctx context.Context, limit int) (int, error)

	// Capabilities returns what the store guarantees, read from the server where
	// possible. It fails if the server does not answer.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// TxStore is a Store whose records can share a transaction with the application's
// rows.
type TxStore[Tx any] interface {
	Store

	// Atomic begins a transaction and calls run in it once.
	//
	// With hold it first takes the exclusive right to the record, until the
	// transaction ends. If another transaction has the right, run receives Busy
	// at once. The right only saves work: a Swap of the record meanwhile either is
	// Busy, or is applied and makes the transaction's last change fail. run
	// receives the current record, read within the transaction.
	//
	// The results of run decide how the transaction ends:
	//   - (nil, err): roll back, and return err with NotCommitted, or with Unknown
	//     if the rollback is not certain;
	//   - (change, nil): apply the change as the last statement and commit. If this
	//     statement does not apply the change, it fails inside the database, so
	//     that no commit can overtake it: the error is ErrSuperseded, with
	//     NotCommitted. A change that was applied before fails as well, because the
	//     effect would be committed twice;
	//   - (change, err): undo what run did, apply the change and commit, keeping
	//     the right to the record if the store can. The returned error is about the
	//     change only;
	//   - (nil, nil): commit what run did, without a change of the record.
	//
	// A transaction that the database aborted because of a conflict, or whose run
	// met such an error, is rolled back whatever run returned: the error is
	// ErrConflict, with NotCommitted. A transaction that was interrupted, or that
	// has an interrupted statement which run did not undo, is rolled back with
	// ErrInterrupted. If run ended the transaction itself, the error is
	// ErrTxEndedByHandler.
	//
	// The verdict says whether the transaction was committed; it is Committed if
	// the error is nil. A panic or runtime.Goexit in run rolls back and continues.
	// The end of ctx does not end the transaction: run decides. The commit has a
	// time limit of its own, after which the verdict is Unknown.
	//
	// A goroutine that run leaves behind may go on with the transaction. Its writes
	// are committed with the others or not at all, and not together with a stored
	// failure. After Atomic has returned they are refused.
	Atomic(ctx context.Context, id ID, hold bool,
		run func(ctx context.Context, tx Tx, current SwapResult) (*Change, error)) (Verdict, error)

	// SwapTx is Swap within a transaction of the caller.
	SwapTx(ctx context.Context, tx Tx, changes []Change) ([]SwapResult, error)
}

// ErrSuperseded means that the last change of a transaction was not applied,
// because the record had changed. The transaction was rolled back.
var ErrSuperseded = errors.New("semel/store: superseded: the record has changed")

// ErrConflict means that the database aborted a transaction because of other
// transactions, for example by a serialization failure or a deadlock. The
// transaction was rolled back, with NotCommitted; a retry may succeed.
var ErrConflict = errors.New("semel/store: conflict with another transaction")

// ErrInterrupted means that a transaction, or a statement in it, was interrupted
// from outside: the connection was lost, the server shut down or ran out of a
// resource, or a timeout expired. Nothing was committed. The handler's error is
// then not the operation's answer.
var ErrInterrupted = errors.New("semel/store: interrupted")

// ErrTxEndedByHandler means that the handler ended the transaction itself. Its
// writes may have been committed without the record, and no change of the record
// can prove whether they were. The verdict says what is known.
var ErrTxEndedByHandler = errors.New("semel/store: transaction ended by its handler")

// ErrNoPartition is the Err of a create whose ID has a time without a partition,
// because the partition was dropped or does not exist yet. Nothing was written.
var ErrNoPartition = errors.New("semel/store: no partition for the record's time")

// Verdict says what is known about an effect.
type Verdict uint8

const (
	// Unknown is the zero Verdict: the effect may or may not have happened.
	Unknown Verdict = iota
	// Committed means that the effect happened, durably.
	Committed
	// NotCommitted means that the effect did not happen, and cannot happen later.
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

// Capabilities describes what a store guarantees.
type Capabilities struct {
	// Linearizable: a later caller sees everything that an earlier caller was told.
	Linearizable bool
	// Survives is the worst failure after which no change is lost that was reported
	// as applied, with the settings at the time of the call.
	Survives Failure
	// SurvivesBecause is why Survives is less than the store can guarantee. It names
	// the setting, its value and where it is set ("synchronous_commit is off (set
	// with ALTER ROLE for this role)"), and becomes part of errors. It is empty if no
	// setting makes the store survive more.
	SurvivesBecause string
	// Connections identifies the pool of the transactions' connections, such as a
	// *pgxpool.Pool. It must be comparable with ==, and is equal for all stores
	// over one pool. The engine begins no transaction within the context of another
	// one with the same Connections, because the second could wait for the
	// connection of the first. Nil: the engine compares only itself.
	Connections any
	// Exclusion is which writers an open transaction of a TxStore excludes.
	Exclusion Exclusion
	// Clock is the clock that Due and Expire are compared with.
	Clock Clock
	// Ordered: Scan without Due lists records in the order of their IDs. Without it
	// the order is the store's own, and After only continues a listing.
	Ordered bool
	// ConcurrentSwaps is the best number of concurrent Swaps of many changes each.
	// Zero: a Swap costs no more than a function call, so batching is of no use.
	ConcurrentSwaps int
	// MaxOutcome is the largest outcome, in bytes.
	MaxOutcome int
	// MaxBatch is the largest number of changes of one Swap.
	MaxBatch int
	// MaxBytes is the largest total of inputs and outcomes of one Swap, in bytes. It
	// is at least twice MaxOutcome, so that one change always fits. Zero: only
	// MaxBatch and MaxOutcome limit a Swap.
	MaxBytes int
}

// Query selects records for Scan.
type Query struct {
	State     State  // Absent: any
	Operation string // empty: any
	// Due selects only Pending and InProgress records with a Due in the past,
	// oldest first. Otherwise records are sorted by ID, if the store is Ordered.
	Due bool
	// After is the ID of the last record of the previous page: the page begins after
	// it. It is not used with Due.
	After ID
	// Skip skips that many records, for callers that cannot do anything about the
	// first ones.
	Skip int
	// Limit is the largest number of records: 1 to 1000; zero means 100.
	Limit int
}

// DefaultLimit and MaxLimit limit one page of a Scan.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// PageSize returns the number of records of one page.
func (q Query) PageSize() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}
