package outboxsql

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// Dialect is what differs between databases.
type Dialect struct {
	// Numbered: parameters are $1, $2 and so on, and not question marks.
	Numbered bool
	// Now is the current time as the column created has it, and Age the
	// microseconds from created to now.
	Now, Age string
	// ID is the parameter of an event's ID, and TextID the column as a text.
	ID, TextID string
	// InsertParked begins the statement that inserts a parked aggregate or nothing, and
	// OrNothing ends it.
	OrNothing string
	// Name puts the names of the store's tables into a statement.
	Name func(text string) string
	// Fault adds to an error of the database what the store was doing.
	Fault func(doing string, err error) error
}

// text returns a statement for the database.
func (d *Dialect) text(s string) string {
	s = d.Name(s)
	if !d.Numbered {
		return s
	}
	var b strings.Builder
	for i := 1; ; i++ {
		before, after, found := strings.Cut(s, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(i))
		s = after
	}
}

// Conn runs statements on a database or in a transaction.
type Conn interface {
	Exec(ctx context.Context, text string, args ...any) (rows int64, err error)
	// Query calls each with a function that reads the current row.
	Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error
}

// Pool runs queries on a database, and transactions.
type Pool interface {
	Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error
	// Tx runs do in a transaction, which is committed if do returns nil.
	Tx(ctx context.Context, do func(c Conn) error) error
}

// Runner is a *sql.DB, a *sql.Conn, a *sql.Tx, or what a store makes of one.
type Runner interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// SQL returns the Conn of package database/sql.
func SQL(r Runner) Conn { return sqlConn{r} }

type sqlConn struct{ r Runner }

// SQLPool returns the Pool of package database/sql.
func SQLPool(db *sql.DB) Pool { return sqlPool{sqlConn{db}, db} }

type sqlPool struct {
	sqlConn

	db *sql.DB
}

// Tx runs do in a transaction.
func (p sqlPool) Tx(ctx context.Context, do func(c Conn) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(sqlConn{tx}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Exec runs a statement.
func (c sqlConn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := c.r.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query runs a query.
func (c sqlConn) Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error {
	rows, err := c.r.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
