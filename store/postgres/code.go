package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// The SQLSTATEs that the store distinguishes. The first two characters are the
// class.
const (
	codeNoSavepoint        = "3B001"
	codeIdleInTransaction  = "25P03"
	codeTransactionTimeout = "25P04"
	codeSerialization      = "40001"
	codeUnknown            = "40003"
	codeDeadlock           = "40P01"
	codeUnique             = "23505"
	codeCheck              = "23514"
	codeDivisionByZero     = "22012"
	codeNoTable            = "42P01"
	codeLockTimeout        = "55P03"
	codeCancelled          = "57014"
)

// errorOf returns the server's error for a statement after which the session
// continues, and nil for any other error: one that ends the session, or that comes
// from the client or the network.
func errorOf(err error) *pgconn.PgError {
	e, ok := errtype.Find[*pgconn.PgError](err)
	if !ok || e.SeverityUnlocalized != "ERROR" && (e.SeverityUnlocalized != "" || e.Severity != "ERROR") {
		return nil
	}
	return e
}

// codeOf returns the SQLSTATE of a statement's error, and "" for other errors.
func codeOf(err error) string {
	if e := errorOf(err); e != nil {
		return e.Code
	}
	return ""
}

// class returns the class of a SQLSTATE.
func class(code string) string { return code[:min(2, len(code))] }

// rollsBack lists the errors, of the last statements of a transaction or of its
// COMMIT, after which it was certainly not committed. After any other error the
// outcome is unknown: above all if it is not an ERROR of the server, such as the
// loss of the connection or the end of the session, and after 40003, which means
// just that. The only end of a session that proves that no COMMIT arrived is the
// timeout of an idle transaction. The driver's own "safe to retry" is not used,
// because it can be wrong.
func rollsBack(err error) bool {
	if e, ok := errtype.Find[*pgconn.PgError](err); ok && e.Code == codeIdleInTransaction {
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

// isConflict reports whether the transaction was aborted because of other
// transactions, so that a retry may succeed.
func isConflict(err error) bool {
	code := codeOf(err)
	return code == codeSerialization || code == codeDeadlock
}

// isInterrupted reports whether a statement or its session was interrupted from
// outside: a timeout expired, or the server shut down, ran out of a resource or
// could not read. Such an error says nothing about the statement.
func isInterrupted(err error) bool {
	e, ok := errtype.Find[*pgconn.PgError](err)
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

// isBusy reports whether another open transaction was in the way.
func isBusy(err error) bool { return codeOf(err) == codeLockTimeout || isConflict(err) }

// isRefusal reports whether the server refuses the data, which may be the fault of
// one record of a batch.
func isRefusal(err error) bool {
	switch class(codeOf(err)) {
	case "22", "23", "54", "P0":
		return true
	default:
		return false
	}
}

// errConnLost means that the connection was lost before anything was committed.
var errConnLost = errors.New("semel/postgres: the connection was lost within the transaction")

// withConflict marks conflicts with other transactions as store.ErrConflict.
func withConflict(err error) error {
	if isConflict(err) && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}

// withMark marks the errors of rolled-back transactions that are not the handler's
// answer: conflicts and interruptions.
func withMark(err error) error {
	if (isInterrupted(err) || errors.Is(err, errConnLost)) && !errors.Is(err, store.ErrInterrupted) {
		return fmt.Errorf("%w: %w", store.ErrInterrupted, err)
	}
	return withConflict(err)
}

// fault adds to an error what the store was doing.
func (s *Store) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if codeOf(err) == codeNoTable {
		return fmt.Errorf("%s: %w: %w", doing, ErrNoSchema, err)
	}
	if inUse, limit := s.source.usage(); inUse == limit && ended(err) {
		return fmt.Errorf("%s, with all %d connections of the pool in use: %w", doing, limit, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// ended reports whether a context has ended, for example while the caller waited
// for a connection.
func ended(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
