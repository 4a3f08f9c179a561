package sqlite

import "errors"

var (
	// ErrNoSchema means that a table is missing: run Up of package migrate/sqlite first.
	ErrNoSchema = errors.New("semel/sqlite: tables are missing, run semel migrate, or Up of package migrate/sqlite, first")

	// ErrBusy means that another connection held the write lock for too long.
	// Nothing was begun.
	ErrBusy = errors.New("semel/sqlite: another connection holds the write lock")

	// ErrEnded means that the transaction of Atomic ended before its last change:
	// the handler ended it, or SQLite rolled it back after an error that the
	// handler ignored.
	ErrEnded = errors.New("semel/sqlite: the transaction was ended while the handler had it")
)
