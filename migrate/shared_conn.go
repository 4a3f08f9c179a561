package migrate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// shareConn returns a database whose only connection is driverConn. The
// connection is in a transaction and stays in it; a transaction of the returned
// database is a savepoint. So a library that requires a *sql.DB can work inside
// our transaction. Closing the database does not close the connection.
func shareConn(driverConn any) *sql.DB {
	db := sql.OpenDB(connector{driverConn})
	db.SetMaxOpenConns(1)
	return db
}

type connector struct{ driverConn any }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, ok := c.driverConn.(driver.Conn)
	if !ok {
		return nil, fmt.Errorf("%T is no driver.Conn", c.driverConn)
	}
	return sharedConn{conn}, nil
}

func (c connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("a shared connection cannot be opened again")
}

// sharedConn is a connection within an open transaction.
type sharedConn struct{ driver.Conn }

var (
	_ driver.ConnBeginTx        = sharedConn{}
	_ driver.ExecerContext      = sharedConn{}
	_ driver.QueryerContext     = sharedConn{}
	_ driver.ConnPrepareContext = sharedConn{}
)

func (c sharedConn) Close() error { return nil }

func (c sharedConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c sharedConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	tx := savepoint{c}
	return tx, tx.exec(context.WithoutCancel(ctx), `SAVEPOINT semel_migrate`)
}

func (c sharedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if conn, ok := c.Conn.(driver.ExecerContext); ok {
		return conn.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

func (c sharedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if conn, ok := c.Conn.(driver.QueryerContext); ok {
		return conn.QueryContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

func (c sharedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if conn, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return conn.PrepareContext(ctx, query)
	}
	return c.Prepare(query)
}

// savepoint implements a transaction within the transaction.
type savepoint struct{ conn sharedConn }

func (s savepoint) Commit() error {
	return s.exec(context.Background(), `RELEASE semel_migrate`)
}

func (s savepoint) Rollback() error {
	ctx := context.Background()
	return errors.Join(s.exec(ctx, `ROLLBACK TO semel_migrate`), s.exec(ctx, `RELEASE semel_migrate`))
}

func (s savepoint) exec(ctx context.Context, query string) error {
	_, err := s.conn.ExecContext(ctx, query, nil)
	if !errors.Is(err, driver.ErrSkip) {
		return err
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	if with, ok := stmt.(driver.StmtExecContext); ok {
		_, err = with.ExecContext(ctx, nil)
		return err
	}
	return fmt.Errorf("%T cannot run statements with a context", stmt)
}
