package chatdb

import "context"

// Querier reads. Statements are written once for every database: their
// parameters are $1, $2 … and a dollar sign stands for nothing else.
type Querier interface {
	// Query returns rows that the caller closes.
	Query(ctx context.Context, statement string, args ...any) (Rows, error)
	// QueryRow returns one row. Its Scan says ErrNotFound when there is none.
	QueryRow(ctx context.Context, statement string, args ...any) Row
}

// Row is one row of an answer.
type Row interface {
	Scan(dest ...any) error
}

// Rows are read one after the other; Err says why there were no more.
type Rows interface {
	Row
	Next() bool
	Err() error
	Close()
}

// Tx is a transaction of one of the databases the chat knows: OnSQLite and
// OnPostgres make them.
type Tx interface {
	Querier
	// Exec runs a statement that answers no rows.
	Exec(ctx context.Context, statement string, args ...any) error
	// beneath is the driver's own transaction.
	beneath() any
	dialect() dialect
}

// Beneath returns the driver's own transaction, if it is a T.
func Beneath[T any](tx Tx) (T, bool) {
	v, ok := tx.beneath().(T)
	return v, ok
}

// OwnTx is a transaction that its holder ends.
type OwnTx interface {
	Tx
	// Commit says an error also when nobody knows whether it happened.
	Commit(ctx context.Context) error
	// Rollback does nothing after Commit.
	Rollback(ctx context.Context) error
}

// DB is a database.
type DB interface {
	Querier
	// Begin opens a transaction that does not end when ctx does.
	Begin(ctx context.Context) (OwnTx, error)
	// Ping asks the database for something that it has to look up.
	Ping(ctx context.Context) error
	Close() error
}

// dialect is what the databases do not write alike.
type dialect struct {
	schema string
	// lockRow ends a select of a row that nobody else may write meanwhile.
	lockRow string
}
