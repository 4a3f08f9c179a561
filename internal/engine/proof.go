package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// proof reports whether err proves that the attempt had no effect, and whether the
// failure is then stored.
func (o *operation) proof(err error, rolledBack bool) (proven, final bool) {
	_, fence := errors.AsType[*callerr.FenceError](err)
	_, crashed := errors.AsType[*callerr.ExhaustedError](err)
	if fence || crashed || errors.Is(err, callerr.ErrAbandoned) || err == errNotCommitted { //nolint:errorlint // the last is never wrapped
		return rolledBack, false // the operation itself has not answered
	}
	mark, marked := errors.AsType[*callerr.MarkedError](err)
	proven = marked || rolledBack
	if !proven && o.classify != nil {
		proven = o.classify(err) == store.NotCommitted
	}
	if marked && mark.Keep {
		return true, true
	}
	return proven, proven && o.onError == Keep && !isTransient(err)
}

// isTransient reports whether err comes from the circumstances of the attempt, such
// as a lost lease or a cancelled context. Such an error is not the operation's
// answer and is never stored.
func isTransient(err error) bool {
	_, infrastructure := errors.AsType[*callerr.TxError](err)
	_, snoozed := errors.AsType[*callerr.SnoozeError](err)
	return infrastructure || snoozed || callerr.IsOwn(err, callerr.ErrLeaseLost) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isAnswered reports whether err can be an answer of the receiver of the effect. An
// attempt that did not send its request has none.
func isAnswered(err error) bool {
	_, snoozed := errors.AsType[*callerr.SnoozeError](err)
	_, cancelled := errors.AsType[*callerr.CancelledError](err)
	_, crashed := errors.AsType[*callerr.ExhaustedError](err)
	_, unread := errors.AsType[*callerr.InputError](err)
	return !snoozed && !cancelled && !crashed && !unread
}

// Errors of an attempt under policy Atomic whose function returned success although
// no transaction of InTx was committed. They are never wrapped.
var (
	// errWithoutTx: InTx was never called, so the effect, if there is one, is
	// outside of the transaction.
	errWithoutTx = errors.New("semel: the function returned success without having called InTx: " +
		"the effect of an operation with policy Atomic must be in the transaction of InTx")
	// errNotCommitted: InTx was called, and its transaction was not committed
	// before the function returned.
	errNotCommitted = errors.New("semel: the function returned success although the " +
		"transaction of InTx did not commit: wait for InTx and return its error")
)
