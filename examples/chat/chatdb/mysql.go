package chatdb

import (
	"context"
	"database/sql"
	_ "embed"
	"strconv"
	"strings"
)

//go:embed schema_mysql.sql
var schemaMySQL string

type mysqlDB struct {
	mysqlQuerier

	db *sql.DB
}

// MySQL wraps a MariaDB database, which mysql.Open has opened. Its Close closes db.
func MySQL(db *sql.DB) DB { return &mysqlDB{mysqlQuerier{db}, db} }

// Begin opens a transaction in which each statement sees what was committed before it.
func (d *mysqlDB) Begin(ctx context.Context) (OwnTx, error) {
	tx, err := d.db.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	return mysqlLocalTx{mysqlTx{mysqlQuerier{tx}, tx}}, nil
}

func (d *mysqlDB) Ping(ctx context.Context) error { return d.db.PingContext(ctx) }

func (d *mysqlDB) Close() error { return d.db.Close() }

// OnMySQL wraps a transaction of the driver.
func OnMySQL(tx *sql.Tx) Tx { return mysqlTx{mysqlQuerier{tx}, tx} }

type mysqlTx struct {
	mysqlQuerier

	tx *sql.Tx
}

func (t mysqlTx) Exec(ctx context.Context, statement string, args ...any) error {
	statement, args = positional(statement, args)
	_, err := t.tx.ExecContext(ctx, statement, args...)
	return err
}

func (t mysqlTx) beneath() any { return t.tx }

func (mysqlTx) dialect() dialect {
	return dialect{
		schema:  strings.SplitAfter(strings.TrimSpace(schemaMySQL), ";\n"),
		lockRow: ` for update`, insertNew: `insert ignore into`,
	}
}

type mysqlLocalTx struct{ mysqlTx }

func (t mysqlLocalTx) Commit(context.Context) error { return t.tx.Commit() }

func (t mysqlLocalTx) Rollback(context.Context) error { return t.tx.Rollback() }

// mysqlQuerier implements Querier for *sql.DB and *sql.Tx.
type mysqlQuerier struct {
	q interface {
		QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
	}
}

func (q mysqlQuerier) Query(ctx context.Context, statement string, args ...any) (Rows, error) {
	statement, args = positional(statement, args)
	rows, err := q.q.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return sqlRows{rows}, nil
}

func (q mysqlQuerier) QueryRow(ctx context.Context, statement string, args ...any) Row {
	statement, args = positional(statement, args)
	return existingRow{q.q.QueryRowContext(ctx, statement, args...)}
}

// positional replaces $1, $2 … by MySQL's ?, and returns the arguments in the order in
// which the statement uses them. It also replaces the double quotes of names.
func positional(statement string, args []any) (string, []any) {
	parts := strings.Split(strings.ReplaceAll(statement, `"`, "`"), "$")
	used := make([]any, 0, len(parts))
	var b strings.Builder
	b.WriteString(parts[0])
	for _, part := range parts[1:] {
		rest := strings.TrimLeft(part, "0123456789")
		n, _ := strconv.Atoi(part[:len(part)-len(rest)])
		used = append(used, args[n-1])
		b.WriteString("?" + rest)
	}
	return b.String(), used
}
