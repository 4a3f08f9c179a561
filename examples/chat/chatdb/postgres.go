package chatdb

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed schema_postgres.sql
var schemaPostgres string

type postgresDB struct {
	postgresQuerier

	pool *pgxpool.Pool
}

// Postgres returns the database of pool. Its Close closes pool.
func Postgres(pool *pgxpool.Pool) DB {
	return &postgresDB{postgresQuerier{pool}, pool}
}

func (d *postgresDB) Begin(ctx context.Context) (OwnTx, error) {
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return postgresTx{postgresQuerier{tx}, tx}, nil
}

func (d *postgresDB) Ping(ctx context.Context) error { return d.pool.Ping(ctx) }

func (d *postgresDB) Close() error {
	d.pool.Close()
	return nil
}

// OnPostgres wraps a transaction of the driver.
func OnPostgres(tx pgx.Tx) Tx { return postgresTx{postgresQuerier{tx}, tx} }

type postgresTx struct {
	postgresQuerier

	tx pgx.Tx
}

func (t postgresTx) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.tx.Exec(ctx, statement, args...)
	return err
}

// endBound limits COMMIT and ROLLBACK.
const endBound = 10 * time.Second

func (t postgresTx) Commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	return t.tx.Commit(ctx)
}

func (t postgresTx) Rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	return t.tx.Rollback(ctx)
}

func (t postgresTx) beneath() any { return t.tx }

func (postgresTx) dialect() dialect {
	d := standard(schemaPostgres)
	d.lockRow = ` for no key update`
	return d
}

// postgresQuerier implements Querier for a pool and for a transaction.
type postgresQuerier struct {
	q interface {
		Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
		QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
	}
}

func (q postgresQuerier) Query(ctx context.Context, statement string, args ...any) (Rows, error) {
	return q.q.Query(ctx, statement, args...)
}

func (q postgresQuerier) QueryRow(ctx context.Context, statement string, args ...any) Row {
	return existingRow{q.q.QueryRow(ctx, statement, args...)}
}
