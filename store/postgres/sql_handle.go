package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"
)

// handles makes the *sql.Tx of handlers. Each of its connections is the guard of one
// transaction that is open already, and is not used again.
var handles = func() *sql.DB { //nolint:gochecknoglobals // it belongs to no store
	db := sql.OpenDB(handleConnector{})
	db.SetMaxIdleConns(-1)
	return db
}()

// handleConnector connects to the transaction in a context.
type handleConnector struct{}

type handleKey struct{}

// Connect returns the guarded connection of the transaction in ctx.
func (handleConnector) Connect(ctx context.Context) (driver.Conn, error) {
	return &guardedConn{ctx.Value(handleKey{}).(*transaction)}, nil
}

// Driver is not used.
func (handleConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// sqlHandle returns a *sql.Tx for the handler of t, and a function that ends it after t
// has ended.
func sqlHandle(ctx context.Context, t *transaction) (*sql.Tx, func(), error) {
	tx, err := handles.BeginTx(context.WithValue(context.WithoutCancel(ctx), handleKey{}, t), nil)
	if err != nil {
		return nil, func() {}, err
	}
	return tx, func() {
		t.mu.Lock()
		running := t.within
		t.mu.Unlock()
		if running { // Rollback waits for that call
			go func() { _ = tx.Rollback() }()
			return
		}
		_ = tx.Rollback()
	}, nil
}

// guardedConn is the connection of t for its handler, one call at a time.
type guardedConn struct{ t *transaction }

// inner is the driver's connection.
func (c *guardedConn) inner() *stdlib.Conn { return c.t.conn.lender.(*sqlLender).driver }

// effectOfNamed is effectOf for the arguments of database/sql. The store's own calls on
// the connection stay inside of the transaction.
func effectOfNamed(query string, args []driver.NamedValue) sqlEffect {
	all := make([]any, len(args))
	for i, a := range args {
		if _, own := a.Value.(*connRewriter); own {
			return staysInside
		}
		all[i] = a.Value
	}
	return effectOf(query, all)
}

// Prepare prepares nothing, because pgx prepares the statements that it runs.
func (c *guardedConn) Prepare(query string) (driver.Stmt, error) { return guardedStmt{c, query}, nil }

// CheckNamedValue accepts all values, as the driver does.
func (c *guardedConn) CheckNamedValue(*driver.NamedValue) error { return nil }

// BeginTx returns the transaction that is open already.
func (c *guardedConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

// Begin is not called, because BeginTx is.
func (c *guardedConn) Begin() (driver.Tx, error) { return c, nil }

// Commit is refused, because run's results decide the end.
func (c *guardedConn) Commit() error { return ErrEnded }

// Rollback is refused, too.
func (c *guardedConn) Rollback() error { return ErrEnded }

// Close does nothing, because the transaction has the connection, and pgx the statements.
func (c *guardedConn) Close() error { return nil }

// guardedStmt is a statement of the handler. database/sql prepares each one, because
// guardedConn runs none itself.
type guardedStmt struct {
	*guardedConn

	query string
}

// NumInput leaves it to the server to count the arguments.
func (guardedStmt) NumInput() int { return -1 }

// ExecContext runs the statement.
func (s guardedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	err = s.t.call(ctx, effectOfNamed(s.query, args), func() error {
		result, err = s.inner().ExecContext(ctx, s.query, args)
		return err
	})
	return result, err
}

// QueryContext runs the statement, which gives rows.
func (s guardedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.t.enter(ctx, effectOfNamed(s.query, args)); err != nil {
		return nil, err
	}
	rows, err := s.inner().QueryContext(ctx, s.query, args)
	s.t.reading = err == nil
	s.t.exit(err)
	if err != nil {
		return nil, err
	}
	return &guardedSQLRows{rows.(*stdlib.Rows), s.t}, nil
}

var errWithoutContext = errors.New("semel/postgres: database/sql passes a context")

// Exec is not called, because ExecContext is.
func (guardedStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errWithoutContext }

// Query is not called, because QueryContext is.
func (guardedStmt) Query([]driver.Value) (driver.Rows, error) { return nil, errWithoutContext }

// guardedSQLRows are rows whose reading is guarded. database/sql lets one goroutine at a
// time use them, and closes them when the transaction has ended.
type guardedSQLRows struct {
	*stdlib.Rows

	t *transaction
}

// Next reads the next row, after the last of which the driver reports io.EOF.
func (r *guardedSQLRows) Next(dest []driver.Value) error {
	return r.t.read(func() error { return r.Rows.Next(dest) })
}

// Close ends the reading.
func (r *guardedSQLRows) Close() error {
	return r.t.read(func() error {
		r.t.reading = false
		return r.Rows.Close()
	})
}
