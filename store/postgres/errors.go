package postgres

import "errors"

var (
	// ErrNoSchema says that a table is missing: run migrate.Postgres first.
	ErrNoSchema = errors.New("semel/postgres: tables are missing, run migrate.Postgres(ctx, pool) first")

	// ErrBusy says that somebody else had the right to the record, and run went
	// on although it was told so. Nothing was begun.
	ErrBusy = errors.New("semel/postgres: somebody else holds the record")

	// ErrEnded says that the transaction of Atomic was over before its last
	// change: the handler has ended it. A handler that calls Commit or Rollback
	// on its transaction is refused with it.
	ErrEnded = errors.New("semel/postgres: the transaction is not the handler's to end")

	// ErrIsolation says that a leased attempt was to finish in a transaction of
	// a level above read committed, which its own heartbeats would abort.
	ErrIsolation = errors.New("semel/postgres: Options.Isolation above read committed is for inline transactions only")
)
