package postgres

import "errors"

var (
	// ErrNoSchema means that a table is missing: run Up of package migrate/postgres first.
	ErrNoSchema = errors.New("semel/postgres: tables are missing, run semel migrate, or Up of package migrate/postgres, first")
	// ErrNotPostgres means that the server is another product with the protocol of
	// PostgreSQL. Its locks, transactions and settings may mean something else.
	ErrNotPostgres = errors.New("semel/postgres: the server is not PostgreSQL")

	// ErrBusy means that another transaction has the right to the record, and run
	// returned success although it was told so. Nothing was begun.
	ErrBusy = errors.New("semel/postgres: another transaction holds the record")

	// ErrEnded means that the transaction of Atomic ended before its last change,
	// because the handler has ended it. Commit and Rollback of the handler's
	// transaction return it.
	ErrEnded = errors.New("semel/postgres: the transaction is not the handler's to end")

	// ErrIsolation means that a leased attempt was to end in a transaction above
	// read committed, which the attempt's own heartbeats would abort.
	ErrIsolation = errors.New("semel/postgres: Options.Isolation above read committed is for inline transactions only")
)
