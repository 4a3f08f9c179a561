package sqlite

import "errors"

var (
	// ErrNoSchema says that a table is missing: run migrate.SQLite first.
	ErrNoSchema = errors.New("semel/sqlite: tables are missing, run migrate.SQLite(ctx, db) first")

	// ErrBusy says that somebody else held the write lock for too long, so that
	// nothing was begun.
	ErrBusy = errors.New("semel/sqlite: somebody else holds the write lock")

	// ErrEnded says that the transaction of Atomic was over before its last
	// change: the handler ended it, or SQLite rolled it back after an error
	// that the handler passed over.
	ErrEnded = errors.New("semel/sqlite: the transaction was ended while the handler had it")
)
