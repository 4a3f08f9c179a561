package ledger

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semelgo/semel/internal/check"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

// Database is a database with the tables of a store, in which a test has tables of its own. Its
// functions may be called while the test cleans up.
type Database[Tx any] struct {
	Store store.TxStore[Tx]

	// Begin, Commit and Rollback are for transactions without the store.
	Begin            func() Tx
	Commit, Rollback func(tx Tx) error
	// ExecTx runs a statement in a transaction.
	ExecTx func(ctx context.Context, tx Tx, text string, args ...any) error
	// Exec runs a statement, which must succeed.
	Exec func(text string, args ...any)
	// Scan reads the one row of a query, which must succeed.
	Scan func(dest any, text string, args ...any)
}

// untilFree repeats what SQLite has refused because other connections kept the right to write for two
// seconds, as they do under load. SQLite does not serve its writers in turn. What it refuses has no effect.
func untilFree[T any](do func() (T, error)) (T, error) {
	v, err := do()
	for sqlite.IsBusy(err) {
		v, err = do()
	}
	return v, err
}

// OnSQL returns the database of db. The store may reach it by other connections.
func OnSQL(tb testing.TB, db *sql.DB, s store.TxStore[*sql.Tx]) Database[*sql.Tx] {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	return Database[*sql.Tx]{
		Store: s,
		Begin: func() *sql.Tx {
			tb.Helper()
			return check.Must(untilFree(func() (*sql.Tx, error) { return db.BeginTx(ctx, nil) }))(tb)
		},
		Commit:   (*sql.Tx).Commit,
		Rollback: (*sql.Tx).Rollback,
		ExecTx: func(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
			_, err := tx.ExecContext(ctx, text, args...)
			return err
		},
		Exec: func(text string, args ...any) {
			tb.Helper()
			_, err := untilFree(func() (sql.Result, error) { return db.ExecContext(ctx, text, args...) })
			check.Require(tb, err, "%s", text)
		},
		Scan: func(dest any, text string, args ...any) {
			tb.Helper()
			check.NoError(tb, db.QueryRowContext(ctx, text, args...).Scan(dest), "%s", text)
		},
	}
}

// OnPgx is OnSQL for a pool of pgx.
func OnPgx(tb testing.TB, pool *pgxpool.Pool, s store.TxStore[pgx.Tx]) Database[pgx.Tx] {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	return Database[pgx.Tx]{
		Store:    s,
		Begin:    func() pgx.Tx { tb.Helper(); return check.Must(pool.Begin(ctx))(tb) },
		Commit:   func(tx pgx.Tx) error { return tx.Commit(ctx) },
		Rollback: func(tx pgx.Tx) error { return tx.Rollback(ctx) },
		ExecTx: func(ctx context.Context, tx pgx.Tx, text string, args ...any) error {
			_, err := tx.Exec(ctx, text, args...)
			return err
		},
		Exec: func(text string, args ...any) {
			tb.Helper()
			_, err := pool.Exec(ctx, text, args...)
			check.Require(tb, err, "%s", text)
		},
		Scan: func(dest any, text string, args ...any) {
			tb.Helper()
			check.NoError(tb, pool.QueryRow(ctx, text, args...).Scan(dest), "%s", text)
		},
	}
}

// subject creates a table of effects with a column.
func (d Database[Tx]) subject(column, placeholder string) storetest.Subject[Tx] {
	d.Exec(`CREATE TABLE effects (` + column + ` NOT NULL)`)
	name, _, _ := strings.Cut(column, " ")
	return storetest.Subject[Tx]{
		Store: d.Store,
		Effect: func(ctx context.Context, tx Tx, key string) error {
			return d.ExecTx(ctx, tx, `INSERT INTO effects (`+name+`) VALUES (`+placeholder+`)`, key)
		},
		Effects: func(key string) (n int) {
			d.Scan(&n, `SELECT count(*) FROM effects WHERE `+name+` = `+placeholder, key)
			return n
		},
	}
}

// OpenSQLite opens a file, which has all tables then.
func OpenSQLite(tb testing.TB, file string) *sql.DB {
	tb.Helper()
	db := check.Must(sqlite.Open(file))(tb)
	tb.Cleanup(func() { _ = db.Close() })
	check.Require(tb, sqlitemigrate.Up(tb.Context(), db, sqlitemigrate.Options{}))
	return db
}

// OpenPostgres opens the database at url, which has all tables then.
func OpenPostgres(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool := Pool(tb, url)
	check.Require(tb, pgmigrate.Up(tb.Context(), pool, pgmigrate.Options{}))
	return pool
}

// OpenPostgresSQL is OpenPostgres with package database/sql.
func OpenPostgresSQL(tb testing.TB, url string) *sql.DB {
	tb.Helper()
	db := SQL(tb, "pgx", url)
	check.Require(tb, pgmigrate.UpSQL(tb.Context(), db, pgmigrate.Options{}))
	return db
}

// OpenMariaDB opens a database by its data source name. It has all tables then.
func OpenMariaDB(tb testing.TB, name string) *sql.DB {
	tb.Helper()
	db := MariaDBPool(tb, name)
	check.Require(tb, mysqlmigrate.Up(tb.Context(), db, mysqlmigrate.Options{}))
	return db
}

// maxConns is the same on machines with any number of processors.
const maxConns = 16

// Pool connects to url. The pool is closed when the test ends.
func Pool(tb testing.TB, url string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	config := check.Must(pgxpool.ParseConfig(url))(tb)
	config.MaxConns = maxConns
	for _, do := range configure {
		do(config)
	}
	pool := check.Must(pgxpool.NewWithConfig(tb.Context(), config))(tb)
	tb.Cleanup(pool.Close)
	return pool
}

// SQL is Pool for a driver of package database/sql.
func SQL(tb testing.TB, driver, name string) *sql.DB {
	tb.Helper()
	return bounded(tb, check.Must(sql.Open(driver, name))(tb))
}

// MariaDBPool is Pool with the settings of the store for MariaDB.
func MariaDBPool(tb testing.TB, name string) *sql.DB {
	tb.Helper()
	return bounded(tb, check.Must(mysql.Open(name))(tb))
}

func bounded(tb testing.TB, db *sql.DB) *sql.DB {
	tb.Helper()
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
