package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// fault decides what becomes of one statement or COMMIT: run does it, and raw
// does something else on the same connection. What fault returns is what the
// store is told.
type fault func(text string, run func() error, raw func(text string) error) error

// breakable is a database whose driver fails as a test tells it to. The driver
// beneath is real.
type breakable struct {
	*sql.DB

	fault atomic.Pointer[fault]
}

// breaking returns a breakable database. With counts its connections tell the
// data version, as the driver beneath does; without, as few drivers do.
func breaking(t testing.TB, counts bool) *breakable {
	t.Helper()
	beneath, err := sql.Open("sqlite", "")
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer beneath.Close()
	b := &breakable{}
	name := filepath.Join(t.TempDir(), "breakable.db") +
		"?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(ON)&_txlock=immediate"
	b.DB = sql.OpenDB(&brokenConnector{b, beneath.Driver(), name, counts})
	furnish(t, b.DB)
	return b
}

func (b *breakable) breakWith(f fault) { b.fault.Store(&f) }

func (c brokenConn) run(text string, run func() error) error {
	f := c.b.fault.Load()
	if f == nil {
		return run()
	}
	return (*f)(text, run, func(text string) error {
		_, err := c.conn.ExecContext(context.Background(), text, nil)
		return err
	})
}

type brokenConnector struct {
	b      *breakable
	driver driver.Driver
	name   string
	counts bool
}

func (c *brokenConnector) Driver() driver.Driver { return c.driver }

func (c *brokenConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	whole, ok := conn.(wholeConn)
	if !ok {
		return nil, errors.New("the driver's connection lacks a method")
	}
	broken := brokenConn{whole, c.b}
	if c.counts {
		return countingConn{broken, conn.(counting)}, nil
	}
	return broken, nil
}

type counting interface {
	FileControlDataVersion(database string) (uint32, error)
}

// wholeConn is what of the driver's connection is passed on.
type wholeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type countingConn struct {
	brokenConn
	counting
}

type brokenConn struct {
	conn wholeConn
	b    *breakable
}

func (c brokenConn) Close() error                           { return c.conn.Close() }
func (c brokenConn) ResetSession(ctx context.Context) error { return c.conn.ResetSession(ctx) }
func (c brokenConn) IsValid() bool                          { return c.conn.IsValid() }
func (c brokenConn) Begin() (driver.Tx, error)              { return nil, errors.ErrUnsupported }

func (c brokenConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c brokenConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.conn.QueryContext(ctx, text, args)
}

func (c brokenConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.run(text, func() error {
		result, err = c.conn.ExecContext(ctx, text, args)
		return err
	})
	return result, err
}

func (c brokenConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.conn.BeginTx(ctx, opts)
	return brokenTx{tx, c}, err
}

func (c brokenConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	whole, ok := stmt.(wholeStmt)
	if !ok {
		return nil, errors.New("the driver's statement lacks a method")
	}
	return brokenStmt{whole, text, c}, nil
}

type wholeStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type brokenStmt struct {
	wholeStmt

	text string
	conn brokenConn
}

func (s brokenStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result := driver.Result(driver.RowsAffected(0))
	err := s.conn.run(s.text, func() error {
		done, err := s.wholeStmt.ExecContext(ctx, args)
		if err == nil {
			result = done
		}
		return err
	})
	return result, err
}

type brokenTx struct {
	driver.Tx

	conn brokenConn
}

func (t brokenTx) Commit() error { return t.conn.run("COMMIT", t.Tx.Commit) }

func (t brokenTx) Rollback() error { return t.conn.run("tx.Rollback", t.Tx.Rollback) }

// atCommit is a fault of COMMIT alone.
func atCommit(f func(run func() error) error) fault {
	return func(text string, run func() error, _ func(string) error) error {
		if text == "COMMIT" {
			return f(run)
		}
		return run()
	}
}

// codeError is an error as the driver without cgo has them.
type codeError int

func (e codeError) Error() string { return "an error of SQLite" }
func (e codeError) Code() int     { return int(e) }

// fieldError is an error as the driver with cgo has them.
type fieldError struct {
	Code         fieldCode
	ExtendedCode extendedCode
}

type (
	fieldCode    int
	extendedCode int
)

func (e fieldError) Error() string { return "an error of SQLite" }
