package mysql

import (
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// Error codes of the server.
const (
	codeChanged       = 1020 // with innodb_snapshot_isolation
	codeNoTable       = 1146
	codeLockWait      = 1205
	codeLocksFull     = 1206
	codeDeadlock      = 1213
	codeNoSavepoint   = 1305
	codeInterrupted   = 1317
	codeTooLarge      = 1153
	codeLocked        = 3572 // NOWAIT on MySQL
	codeWrongCount    = 31901
	codeNotReady      = 1047 // a Galera node without a quorum
	codeCommitRefused = 1180
)

// codeOf returns the server's code of an error, and zero for errors of the client and
// of the network.
func codeOf(err error) uint16 {
	if e, ok := errtype.Find[*driver.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// isConflict reports whether the server rolled the transaction back because of
// another one.
func isConflict(err error) bool {
	code := codeOf(err)
	return code == codeDeadlock || code == codeChanged || errors.Is(err, store.ErrConflict)
}

// isBusy reports whether another open transaction was in the way.
func isBusy(err error) bool {
	code := codeOf(err)
	return code == codeLockWait || code == codeLocked || isConflict(err)
}

// isInterrupted reports whether a statement or its session was interrupted from
// outside: a timeout expired, or the server shut down or ran out of a resource. Such
// an error says nothing about the statement.
func isInterrupted(err error) bool {
	switch codeOf(err) {
	case codeLockWait, codeLocksFull, codeInterrupted, codeNotReady,
		1021, 1037, 1038, 1041, 1114, // no disk space, no memory
		1053, 1927, // shutdown, the connection was killed
		1969, 3024: // the statement's time limit, on MariaDB and MySQL
		return true
	default:
		return errors.Is(err, store.ErrInterrupted)
	}
}

// isRefusal reports whether the server refuses the data of one statement, which it
// has undone.
func isRefusal(err error) bool {
	code := codeOf(err)
	return code != 0 && !isBusy(err) && !isInterrupted(err) && code != codeNoTable && code != codeCommitRefused
}

// withMark marks the errors of rolled-back transactions that are not the handler's
// answer: conflicts and interruptions.
func withMark(err error) error {
	switch {
	case isConflict(err) && !errors.Is(err, store.ErrConflict):
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	case isInterrupted(err) && !errors.Is(err, store.ErrInterrupted):
		return fmt.Errorf("%w: %w", store.ErrInterrupted, err)
	default:
		return err
	}
}

// fault adds to err what the store was doing.
func fault(doing string, err error) error {
	if codeOf(err) == codeNoTable {
		return fmt.Errorf("%s: %w: %w", doing, ErrNoSchema, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
