package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/internal/outboxsql"
	"github.com/semelgo/semel/store"
)

// Outbox returns the table of events, for package outbox.
func (s *Store) Outbox() store.Outbox[pgx.Tx] {
	return outboxsql.New(s.outboxDialect(), pooled{s}, func(tx pgx.Tx) outboxsql.Conn { return named{s, pgxConn{tx}} })
}

// Outbox returns the table of events, for package outbox.
func (s *SQLStore) Outbox() store.Outbox[*sql.Tx] {
	return outboxsql.New(s.outboxDialect(), pooled{s.Store}, func(tx *sql.Tx) outboxsql.Conn {
		return named{s.Store, outboxsql.SQL(tx)}
	})
}

func (s *Store) outboxDialect() outboxsql.Dialect {
	return outboxsql.Dialect{
		Numbered: true, Now: `clock_timestamp()`, Age: `(extract(epoch FROM clock_timestamp() - created) * 1000000)::bigint`,
		ID: `?::uuid`, TextID: `o.id::text`, OrNothing: ` ON CONFLICT DO NOTHING`,
		Name:  func(text string) string { return text }, // named puts the names in, because they must be found first
		Fault: s.fault,
	}
}

// named puts the schema and the prefix of the tables into statements.
type named struct {
	s *Store
	outboxsql.Conn
}

// Exec runs a statement.
func (n named) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	t, err := n.s.tables(ctx)
	if err != nil {
		return 0, err
	}
	return n.Conn.Exec(ctx, t.in(text), args...)
}

// Query runs a query.
func (n named) Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error {
	t, err := n.s.tables(ctx)
	if err != nil {
		return err
	}
	return n.Conn.Query(ctx, each, t.in(text), args...)
}

// pooled runs statements on connections of the pool.
type pooled struct{ s *Store }

// Tx runs do in a transaction.
func (p pooled) Tx(ctx context.Context, do func(c outboxsql.Conn) error) error {
	return p.on(ctx, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return do(named{p.s, pgxConn{tx}}) })
	})
}

// Query runs a query.
func (p pooled) Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error {
	return p.on(ctx, func(conn *pgx.Conn) error { return named{p.s, pgxConn{conn}}.Query(ctx, each, text, args...) })
}

func (p pooled) on(ctx context.Context, do func(conn *pgx.Conn) error) error {
	conn, err := p.s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return do(conn.Conn)
}

// pgxConn runs statements on a connection or in a transaction of pgx.
type pgxConn struct {
	c interface {
		Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	}
}

// Exec runs a statement.
func (p pgxConn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := p.c.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// Query runs a query.
func (p pgxConn) Query(ctx context.Context, each func(scan func(dest ...any) error) error, text string, args ...any) error {
	rows, err := p.c.Query(ctx, text, args...)
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
