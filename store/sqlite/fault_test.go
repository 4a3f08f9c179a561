package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/sqlite"
)

// fault decides what happens to one statement or COMMIT: run executes it, and raw
// executes something else on the same connection. The store gets the error that
// fault returns.
type fault func(text string, run func() error, raw func(text string) error) error

// faultyDriver is a database whose driver fails as a test tells it to. The driver
// beneath is real.
type faultyDriver struct {
	*sql.DB

	fault atomic.Pointer[fault]
}

// openFaulty returns a database with a faultyDriver. With counts its connections
// report the data version, as the driver beneath does; few drivers do.
func openFaulty(t testing.TB, counts bool) *faultyDriver {
	t.Helper()
	beneath, err := sql.Open("sqlite", "")
	check.Require(t, err, "open")
	defer beneath.Close()
	b := &faultyDriver{}
	name := filepath.Join(t.TempDir(), "breakable.db") +
		"?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(ON)&_txlock=immediate"
	b.DB = sql.OpenDB(&faultyConnector{b, beneath.Driver(), name, counts})
	createTables(t, b.DB)
	return b
}

func (b *faultyDriver) setFault(f fault) { b.fault.Store(&f) }

func (c faultyConn) run(text string, run func() error) error {
	f := c.b.fault.Load()
	if f == nil {
		return run()
	}
	return (*f)(text, run, func(text string) error {
		_, err := c.conn.ExecContext(context.Background(), text, nil)
		return err
	})
}

type faultyConnector struct {
	b      *faultyDriver
	driver driver.Driver
	name   string
	counts bool
}

func (c *faultyConnector) Driver() driver.Driver { return c.driver }

func (c *faultyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	whole, ok := conn.(wholeConn)
	if !ok {
		return nil, errors.New("the driver's connection lacks a method")
	}
	broken := faultyConn{whole, c.b}
	if c.counts {
		return countingConn{broken, conn.(counting)}, nil
	}
	return broken, nil
}

type counting interface {
	FileControlDataVersion(database string) (uint32, error)
}

// wholeConn is the part of the driver's connection that is passed through.
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
	faultyConn
	counting
}

type faultyConn struct {
	conn wholeConn
	b    *faultyDriver
}

func (c faultyConn) Close() error                           { return c.conn.Close() }
func (c faultyConn) ResetSession(ctx context.Context) error { return c.conn.ResetSession(ctx) }
func (c faultyConn) IsValid() bool                          { return c.conn.IsValid() }
func (c faultyConn) Begin() (driver.Tx, error)              { return nil, errors.ErrUnsupported }

func (c faultyConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c faultyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.conn.QueryContext(ctx, text, args)
}

func (c faultyConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.run(text, func() error {
		result, err = c.conn.ExecContext(ctx, text, args)
		return err
	})
	return result, err
}

func (c faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.conn.BeginTx(ctx, opts)
	return faultyTx{tx, c}, err
}

func (c faultyConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	whole, ok := stmt.(wholeStmt)
	if !ok {
		return nil, errors.New("the driver's statement lacks a method")
	}
	return faultyStmt{whole, text, c}, nil
}

type wholeStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	wholeStmt

	text string
	conn faultyConn
}

func (s faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
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

type faultyTx struct {
	driver.Tx

	conn faultyConn
}

func (t faultyTx) Commit() error { return t.conn.run("COMMIT", t.Tx.Commit) }

func (t faultyTx) Rollback() error { return t.conn.run("tx.Rollback", t.Tx.Rollback) }

// atCommit is a fault of COMMIT only.
func atCommit(f func(run func() error) error) fault {
	return func(text string, run func() error, _ func(string) error) error {
		if text == "COMMIT" {
			return f(run)
		}
		return run()
	}
}

// codeError is an error of the driver without cgo.
type codeError int

func (e codeError) Error() string { return "an error of SQLite" }
func (e codeError) Code() int     { return int(e) }

// fieldError is an error of the driver with cgo.
type fieldError struct {
	Code         fieldCode
	ExtendedCode extendedCode
}

type (
	fieldCode    int
	extendedCode int
)

func (e fieldError) Error() string { return "an error of SQLite" }

// plainCodeError is a pointer error with its code as an unsigned field.
type plainCodeError struct{ Code uint8 }

func (e *plainCodeError) Error() string { return "an error of SQLite" }

// textCodeError has a field Code that is no number.
type textCodeError struct{ Code string }

func (e textCodeError) Error() string { return e.Code }

func TestCodeOf(t *testing.T) {
	for _, row := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("database is locked"), 0}, // a text is no code
		{sql.ErrTxDone, 0},
		{codeError(261), 261},
		{fmt.Errorf("swap: %w", codeError(5)), 5},
		{errors.Join(sql.ErrTxDone, codeError(5)), 5},
		{fieldError{5, 0}, 5},
		{fieldError{5, 261}, 261},
		{fmt.Errorf("swap: %w", fieldError{5, 261}), 261},
		{&fieldError{19, 787}, 787},
		{&plainCodeError{6}, 6},
		{(*plainCodeError)(nil), 0},
		{textCodeError{"5"}, 0},
	} {
		if got := sqlite.CodeOf(row.err); got != row.want {
			t.Errorf("the code of %#v is %d, want %d", row.err, got, row.want)
		}
	}
}

func TestIsBusy(t *testing.T) {
	db := open(t)
	begin(t, db)
	conn := connect(t, db)
	mustExec(t, conn, `PRAGMA busy_timeout = 0`)
	if _, err := conn.ExecContext(t.Context(), `INSERT INTO effects VALUES ('a')`); !sqlite.IsBusy(err) {
		t.Errorf("IsBusy(%v) = false, want true", err)
	}
	if _, err := conn.ExecContext(t.Context(), `INSERT INTO nowhere VALUES ('a')`); err == nil || sqlite.IsBusy(err) {
		t.Errorf("IsBusy(%v) = true, want false", err)
	}
}
