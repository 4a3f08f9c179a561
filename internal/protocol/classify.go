package protocol

import (
	"errors"

	"github.com/semelgo/semel/store"
)

// TxEnd is what a store and a handler have reported about the transaction of an
// attempt.
type TxEnd struct {
	Verdict store.Verdict
	Err     error // of the store
	// Called means that the handler was called.
	Called bool
	// Failed means that the handler returned an error, which rolls back its writes.
	Failed bool
	// Stores means that a failure was to be stored in the same transaction.
	Stores bool
}

// TxResult is how the transaction of an attempt ended.
type TxResult uint8

const (
	// TxCommitted means that the handler's writes and the record are committed.
	TxCommitted TxResult = iota
	// TxCommittedByHandler means that the handler's writes are committed, and the
	// record may not be: the handler has committed by itself.
	TxCommittedByHandler
	// TxEndedByHandler means that the handler has ended the transaction, and that no
	// change of the record can prove anything about its writes.
	TxEndedByHandler
	// TxNotCalled means that the handler was not called.
	TxNotCalled
	// TxConflict means that the transaction was rolled back because of another one,
	// and can run again.
	TxConflict
	// TxSuperseded means that the transaction was rolled back, because the record
	// has changed.
	TxSuperseded
	// TxInterrupted means that the transaction was rolled back because it was
	// interrupted, for example by a timeout or a shutdown. The handler may have
	// caused this.
	TxInterrupted
	// TxNoPartition means that the transaction was rolled back, because the store
	// has no partition for the record.
	TxNoPartition
	// TxHandlerFailed means that the handler's writes were rolled back because of
	// its error.
	TxHandlerFailed
	// TxRolledBack means that the transaction was rolled back by the database, for
	// any other reason.
	TxRolledBack
	// TxUnknown means that the transaction may or may not be committed.
	TxUnknown
)

// Classify decides how a transaction ended.
func Classify(t TxEnd) TxResult {
	switch {
	case t.Err == nil:
		return TxCommitted
	case t.Verdict == store.Committed:
		return TxCommittedByHandler
	case !t.Called:
		return TxNotCalled
	case t.Verdict == store.Unknown && errors.Is(t.Err, store.ErrTxEndedByHandler):
		return TxEndedByHandler
	case t.Verdict == store.NotCommitted && becauseOf(t.Err) != TxRolledBack:
		return becauseOf(t.Err)
	case t.Failed && (t.Stores || t.Verdict == store.NotCommitted):
		// Without a commit of the handler's own, its writes are rolled back even if
		// it is not known whether its failure is stored.
		return TxHandlerFailed
	case t.Verdict == store.NotCommitted:
		return TxRolledBack
	default:
		return TxUnknown
	}
}

// becauseOf returns why a transaction was rolled back, as far as the store's error
// says it.
func becauseOf(err error) TxResult {
	switch {
	case errors.Is(err, store.ErrSuperseded):
		return TxSuperseded
	case errors.Is(err, store.ErrConflict):
		return TxConflict
	case errors.Is(err, store.ErrInterrupted):
		return TxInterrupted
	case errors.Is(err, store.ErrNoPartition):
		return TxNoPartition
	default:
		return TxRolledBack
	}
}

// Circumstantial reports whether the transaction ended because of its circumstances,
// so that the handler's error, based on data that is no longer true, is not the
// operation's answer.
func (r TxResult) Circumstantial() bool {
	return r == TxConflict || r == TxSuperseded || r == TxInterrupted || r == TxNoPartition
}
