package chatdb

import "context"

// Querier runs queries. A statement is the same for every database: its
// parameters are $1, $2 …, reserved words among its names are in double quotes, and it
// contains no other dollar signs and double quotes.
type Querier interface {
	// Query returns rows that the caller must close.
	Query(ctx context.Context, statement string, args ...any) (Rows, error)
	// QueryRow returns one row. Its Scan returns ErrNotFound if there is none.
	QueryRow(ctx context.Context, statement string, args ...any) Row
}

// Row is the result of QueryRow.
type Row interface {
	Scan(dest ...any) error
}

// Rows iterates over the result of Query. Err is the error that ended the
// iteration, if any.
type Rows interface {
	Row
	Next() bool
	Err() error
	Close()
}

// Tx is a transaction. OnSQLite, OnPostgres and OnMySQL make one of a driver's.
type Tx interface {
	Querier
	// Exec runs a statement that returns no rows.
	Exec(ctx context.Context, statement string, args ...any) error
	// beneath returns the driver's own transaction.
	beneath() any
	dialect() dialect
}

// Beneath returns the driver's own transaction, if it is a T.
func Beneath[T any](tx Tx) (T, bool) {
	v, ok := tx.beneath().(T)
	return v, ok
}

// OwnTx is a transaction that the caller has begun and must end.
type OwnTx interface {
	Tx
	// Commit may return an error although the transaction was committed.
	Commit(ctx context.Context) error
	// Rollback does nothing after Commit.
	Rollback(ctx context.Context) error
}

// DB is a database with the chat's tables.
type DB interface {
	Querier
	// Begin opens a transaction. The end of ctx does not end the transaction.
	Begin(ctx context.Context) (OwnTx, error)
	// Ping runs a query that reads the database.
	Ping(ctx context.Context) error
	Close() error
}

// dialect is the SQL that differs between the databases.
type dialect struct {
	schema []string // statements
	// lockRow is appended to a SELECT to lock its row against other writers.
	lockRow string
	// insertNew and orNothing begin and end an INSERT that skips existing rows.
	insertNew, orNothing string
}

// standard is the dialect of SQLite and PostgreSQL, which run all statements of the
// schema at once.
func standard(schema string) dialect {
	return dialect{schema: []string{schema}, insertNew: `insert into`, orNothing: ` on conflict do nothing`}
}
