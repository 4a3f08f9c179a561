package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// SQLSTATEs that are told apart. The first two characters are the class.
const (
	codeNoActiveTransaction = "25P01"
	codeIdleInTransaction   = "25P03"
	codeTransactionTimeout  = "25P04"
	codeNoSavepoint         = "3B001"
	codeSerialization       = "40001"
	codeUnknown             = "40003"
	codeDeadlock            = "40P01"
	codeUnique              = "23505"
	codeCheck               = "23514"
	codeDivisionByZero      = "22012"
	codeNoTable             = "42P01"
	codeNotSupported        = "0A000"
	codeNoStatement         = "26000"
	codeLockTimeout         = "55P03"
	codeCancelled           = "57014"
)

// errorOf returns the error that the server sent as the answer to a statement,
// after which the session goes on; nil when err is anything else: one that ends
// the session, or came from between here and there.
func errorOf(err error) *pgconn.PgError {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.SeverityUnlocalized != "ERROR" && (e.SeverityUnlocalized != "" || e.Severity != "ERROR") {
		return nil
	}
	return e
}

// codeOf returns the SQLSTATE of a statement's error, empty for other errors.
func codeOf(err error) string {
	if e := errorOf(err); e != nil {
		return e.Code
	}
	return ""
}

// class is what the first two characters of a SQLSTATE say.
func class(code string) string {
	if len(code) < 2 {
		return ""
	}
	return code[:2]
}

// rollsBack lists the errors that say, as the answer to the last statements of a
// transaction or to its COMMIT, that it has certainly not been committed.
// Everything else stays unknown: above all what is said by other means than an
// ERROR of the server, such as the loss of the connection or the end of the
// session, and 40003, which says so itself. Only a session that ended because it
// was idle for too long within the transaction has seen no COMMIT. What the driver
// says of being safe to retry is not asked, because it can be wrong.
func rollsBack(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == codeIdleInTransaction {
		return true
	}
	code := codeOf(err)
	switch class(code) {
	case "21", "22", "23", "25", "26", "27", "2F", "38", "39", "3B", "42", "44", "P0":
		return true
	default:
		return isConflict(err) || code == codeLockTimeout || code == codeCancelled
	}
}

// isConflict says that the transaction was given up in favour of others, and may
// succeed when it is run once more.
func isConflict(err error) bool {
	code := codeOf(err)
	return code == codeSerialization || code == codeDeadlock
}

// isBroken says that a statement or its session was broken off from outside: a
// time was over, the server shut down, ran out of something or could not read.
// It says nothing of what was asked for.
func isBroken(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch class(e.Code) {
	case "08", "53", "57", "58":
		return true
	default:
		return e.Code == codeLockTimeout || e.Code == codeIdleInTransaction || e.Code == codeTransactionTimeout
	}
}

// isBusy says that somebody else's open transaction was in the way.
func isBusy(err error) bool { return codeOf(err) == codeLockTimeout || isConflict(err) }

// isRefusal says that the server does not take what was to be written, which may
// be the fault of one record of many.
func isRefusal(err error) bool {
	switch class(codeOf(err)) {
	case "22", "23", "54", "P0":
		return true
	default:
		return false
	}
}

// isEnded says that the transaction was over, or was another one.
func isEnded(err error) bool {
	code := codeOf(err)
	return errors.Is(err, errGone) || code == codeNoSavepoint || code == codeNoActiveTransaction
}

// withConflict marks the errors that are in conflict with others' transactions.
func withConflict(err error) error {
	if isConflict(err) && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}

// withMark marks the errors that are nobody's answer, of what has been rolled
// back: those in conflict, and those of what was broken off.
func withMark(err error) error {
	if (isBroken(err) || errors.Is(err, errLost)) && !errors.Is(err, store.ErrInterrupted) {
		return fmt.Errorf("%w: %w", store.ErrInterrupted, err)
	}
	return withConflict(err)
}

// fault says what was being done when err came.
func (s *Store) fault(doing string, err error) error {
	if codeOf(err) == codeNoTable {
		return fmt.Errorf("%s: %w: %w", doing, ErrNoSchema, err)
	}
	if stat := s.pool.Stat(); stat.AcquiredConns() == stat.MaxConns() && ended(err) {
		return fmt.Errorf("%s, with all %d connections of the pool in use: %w", doing, stat.MaxConns(), err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// ended says that a context has ended, for instance while a connection was waited for.
func ended(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
