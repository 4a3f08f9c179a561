package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

var (
	me         = semel.ScopeOf("ann")
	errRefused = errors.New("refused")
)

// domain is a database with tables of the domain, a store of records and guard rows.
type domain[Tx any] struct {
	t       *testing.T
	dialect guard.Dialect
	conn    guard.Conn          // direct
	db      guard.Database[Tx]  // through the proxy
	of      func(Tx) guard.Conn // the Conn of a transaction
	store   store.TxStore[Tx]   // of records in the same database
	proxy   *realtest.Proxy     // nil: none
	exec    func(text string, args ...any)
	scan    func(dest any, text string, args ...any)
	execTx  func(ctx context.Context, tx Tx, text string, args ...any) error
	commits func(tx Tx) error
	begin   func() Tx
}

// text returns SQL with the placeholders of the database.
func (d *domain[Tx]) text(s string) string {
	for i := 1; d.dialect == guard.PostgreSQL && strings.Contains(s, "?"); i++ {
		s = strings.Replace(s, "?", "$"+strconv.Itoa(i), 1)
	}
	return s
}

func (d *domain[Tx]) query(s string, args ...any) guard.Statement {
	return guard.Query(d.text(s), args...)
}

func (d *domain[Tx]) count(table, id string) (n int) {
	d.t.Helper()
	d.scan(&n, d.text(`SELECT count(*) FROM `+table+` WHERE id = ?`), id)
	return n
}

// createTables creates the tables of the domain. The table effects has no unique
// index, so that an effect that happens twice counts as two.
func (d *domain[Tx]) createTables() *domain[Tx] {
	d.exec(guard.Schema(d.dialect))
	d.exec(guard.Schema(d.dialect)) // a second time does no harm
	d.exec(`CREATE TABLE effects (id VARCHAR(50) NOT NULL)`)
	d.exec(`CREATE TABLE orders (id VARCHAR(50) NOT NULL PRIMARY KEY, state VARCHAR(20) NOT NULL, changes INT NOT NULL DEFAULT 0)`)
	d.exec(`CREATE TABLE users (id VARCHAR(50) NOT NULL PRIMARY KEY, mail VARCHAR(50) NOT NULL UNIQUE, made_by VARCHAR(50) NOT NULL)`)
	return d
}

// addEffect inserts an effect.
func (d *domain[Tx]) addEffect(ctx context.Context, tx Tx, id string) error {
	return d.execTx(ctx, tx, d.text(`INSERT INTO effects (id) VALUES (?)`), id)
}

// onSQL makes a domain of package database/sql.
func onSQL(t *testing.T, direct, by *sql.DB, dialect guard.Dialect, s store.TxStore[*sql.Tx]) *domain[*sql.Tx] {
	t.Helper()
	return (&domain[*sql.Tx]{
		t: t, dialect: dialect, conn: guard.SQL(direct), db: guard.SQLDatabase(by, dialect), store: s,
		of: func(tx *sql.Tx) guard.Conn { return guard.SQL(tx) },
		exec: func(text string, args ...any) {
			t.Helper()
			if _, err := direct.ExecContext(t.Context(), text, args...); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		},
		scan: func(dest any, text string, args ...any) {
			t.Helper()
			check.NoError(t, direct.QueryRowContext(t.Context(), text, args...).Scan(dest), "%s", text)
		},
		execTx: func(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
			_, err := tx.ExecContext(ctx, text, args...)
			return err
		},
		commits: (*sql.Tx).Commit,
		begin: func() *sql.Tx {
			t.Helper()
			return must(direct.BeginTx(t.Context(), nil))
		},
	}).createTables()
}

func onSQLite(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	db := openSQLite(t, filepath.Join(t.TempDir(), "domain.db"))
	t.Attr("engine", "sqlite")
	return onSQL(t, db, db, guard.SQLite, sqlite.New(db, sqlite.Options{}))
}

func openSQLite(t *testing.T, file string) *sql.DB {
	t.Helper()
	db := must(sqlite.Open(file))
	t.Cleanup(func() { _ = db.Close() })
	must(0, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	return db
}

func onPostgres(t *testing.T) *domain[pgx.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	proxy, url := realtest.NewProxy(t, server.Addr()), server.Database(t)
	direct, by := newPool(t, url), newPool(t, proxy.URL(url))
	must(0, pgmigrate.Up(t.Context(), direct, pgmigrate.Options{}))
	d := &domain[pgx.Tx]{
		t: t, dialect: guard.PostgreSQL, conn: guard.Pgx(direct), db: guard.PgxDatabase(by), proxy: proxy,
		of:    func(tx pgx.Tx) guard.Conn { return guard.Pgx(tx) },
		store: must(postgres.New(direct, postgres.Options{})),
		exec: func(text string, args ...any) {
			t.Helper()
			if _, err := direct.Exec(t.Context(), text, args...); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		},
		scan: func(dest any, text string, args ...any) {
			t.Helper()
			check.NoError(t, direct.QueryRow(t.Context(), text, args...).Scan(dest), "%s", text)
		},
		execTx: func(ctx context.Context, tx pgx.Tx, text string, args ...any) error {
			_, err := tx.Exec(ctx, text, args...)
			return err
		},
		commits: func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
		begin: func() pgx.Tx {
			t.Helper()
			return must(direct.Begin(t.Context()))
		},
	}
	return d.createTables()
}

func newPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config := must(pgxpool.ParseConfig(url))
	config.MaxConns = 16
	pool := must(pgxpool.NewWithConfig(t.Context(), config))
	t.Cleanup(pool.Close)
	return pool
}

func onPostgresSQL(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	proxy, url := realtest.NewProxy(t, server.Addr()), server.Database(t)
	direct, by := openDB(t, "pgx", url), openDB(t, "pgx", proxy.URL(url))
	must(0, pgmigrate.UpSQL(t.Context(), direct, pgmigrate.Options{}))
	d := onSQL(t, direct, by, guard.PostgreSQL, must(postgres.NewSQL(direct, postgres.Options{})))
	d.proxy = proxy
	return d
}

func openDB(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db := must(sql.Open(driver, name))
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func onMariaDB(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	server := realtest.MariaDB(t)
	name := server.Database(t)
	proxy := realtest.NewMySQLProxy(t, server.Addr())
	direct, by := openDB(t, "mysql", name), openDB(t, "mysql", proxy.DSN(name))
	records := must(mysql.Open(name))
	t.Cleanup(func() { _ = records.Close() })
	must(0, mysqlmigrate.Up(t.Context(), records, mysqlmigrate.Options{}))
	d := onSQL(t, direct, by, guard.MySQL, must(mysql.New(records, mysql.Options{})))
	d.proxy = proxy
	return d
}

// suite has a test for each kind of transaction.
type suite struct {
	sql func(t *testing.T, d *domain[*sql.Tx])
	pgx func(t *testing.T, d *domain[pgx.Tx])
}

// onAll runs a test on each database and each handle.
func onAll(t *testing.T, s suite) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); s.sql(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); s.pgx(t, onPostgres(t)) })
	t.Run("postgres database/sql", func(t *testing.T) { t.Parallel(); s.sql(t, onPostgresSQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); s.sql(t, onMariaDB(t)) })
}

// newEngine returns an engine over s.
func newEngine[Tx any](t *testing.T, s store.TxStore[Tx], o semel.Options) *semel.Engine[Tx] {
	t.Helper()
	o.Survive = store.NoFailure // the test's servers do not wait for the disk
	e := must(semel.New(s, o))
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	return e
}

// inMemory returns an engine over records in memory.
func inMemory(t *testing.T, o semel.Options) *semel.Engine[*memory.Tx] {
	t.Helper()
	return newEngine(t, memory.New(memory.Options{}), o)
}

// rounds returns n, or few of them with -short.
func rounds(n int) int {
	if testing.Short() {
		return max(2, n/25)
	}
	return n
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("%+v", err))
	}
	return v
}
