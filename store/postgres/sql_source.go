package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// sqlSource takes connections from a pool of database/sql.
type sqlSource struct{ db *sql.DB }

func (s sqlSource) acquire(ctx context.Context) (lease, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return lease{}, err
	}
	of := &sqlLender{pooled: conn}
	err = conn.Raw(func(driverConn any) error {
		var isPgx bool
		if of.driver, isPgx = driverConn.(*stdlib.Conn); !isPgx {
			return fmt.Errorf("%w: its connection is a %T", errNotPgx, driverConn)
		}
		return nil
	})
	if err != nil {
		return lease{}, errors.Join(err, conn.Close())
	}
	return lease{Conn: of.driver.Conn(), lender: of}, nil
}

func (s sqlSource) usage() (inUse, limit int) {
	stats := s.db.Stats()
	return stats.InUse, stats.MaxOpenConnections
}

func (s sqlSource) pool() any { return s.db }

var errNotPgx = errors.New("semel/postgres: the database's driver is not github.com/jackc/pgx/v5/stdlib itself (a wrapper, such as one for tracing, hides it)")

// sqlLender takes a connection back for a *sql.DB.
type sqlLender struct {
	pooled *sql.Conn
	driver *stdlib.Conn
}

func (l *sqlLender) Release() {
	if conn := l.driver.Conn(); conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != outside {
		_ = l.pooled.Raw(func(any) error { return driver.ErrBadConn }) // which closes it
		return
	}
	_ = l.pooled.Close()
}

// Hijack leaves the connection to the Release after its running call, because
// database/sql closes no connection that is in use.
func (l *sqlLender) Hijack() *pgx.Conn { return nil }

// onConn calls do with the connection of tx. A *sql.Tx gives no access to it, but pgx
// calls the rewriter of a statement with it, and sends nothing if that fails.
func onConn(ctx context.Context, tx *sql.Tx, do func(ctx context.Context, conn *pgx.Conn) error) error {
	r := &connRewriter{do: do}
	_, err := tx.ExecContext(ctx, `-- a call of Semel on the connection`, r)
	switch {
	case r.called:
		return r.err
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, ErrEnded), errors.Is(err, driver.ErrBadConn), ended(err):
		return fmt.Errorf("use the connection of the transaction: %w", err)
	default:
		return fmt.Errorf("%w: %w", errNotPgx, err)
	}
}

// connRewriter is a pgx.QueryRewriter that uses the connection instead.
type connRewriter struct {
	do     func(ctx context.Context, conn *pgx.Conn) error
	called bool
	err    error
}

var errNoStatement = errors.New("semel/postgres: there is no statement to send")

// RewriteQuery always fails, so that pgx sends no statement.
func (r *connRewriter) RewriteQuery(ctx context.Context, conn *pgx.Conn, _ string, _ []any) (string, []any, error) {
	r.called = true
	r.err = r.do(ctx, conn)
	return "", nil, errors.Join(errNoStatement, r.err)
}
