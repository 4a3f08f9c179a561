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

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
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
	ledger.Database[Tx] // direct

	t       *testing.T
	dialect guard.Dialect
	conn    guard.Conn          // direct
	db      guard.Database[Tx]  // through the proxy
	of      func(Tx) guard.Conn // the Conn of a transaction
	proxy   *realtest.Proxy     // nil: none
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
	d.Scan(&n, d.text(`SELECT count(*) FROM `+table+` WHERE id = ?`), id)
	return n
}

// createTables creates the tables of the domain. The table effects has no unique
// index, so that an effect that happens twice counts as two.
func (d *domain[Tx]) createTables() *domain[Tx] {
	d.Exec(guard.Schema(d.dialect))
	d.Exec(guard.Schema(d.dialect)) // a second time does no harm
	d.Exec(`CREATE TABLE effects (id VARCHAR(50) NOT NULL)`)
	d.Exec(`CREATE TABLE orders (id VARCHAR(50) NOT NULL PRIMARY KEY, state VARCHAR(20) NOT NULL, changes INT NOT NULL DEFAULT 0)`)
	d.Exec(`CREATE TABLE users (id VARCHAR(50) NOT NULL PRIMARY KEY, mail VARCHAR(50) NOT NULL UNIQUE, made_by VARCHAR(50) NOT NULL)`)
	return d
}

// addEffect inserts an effect.
func (d *domain[Tx]) addEffect(ctx context.Context, tx Tx, id string) error {
	return d.ExecTx(ctx, tx, d.text(`INSERT INTO effects (id) VALUES (?)`), id)
}

// onSQL makes a domain of package database/sql.
func onSQL(t *testing.T, direct, by *sql.DB, dialect guard.Dialect, s store.TxStore[*sql.Tx]) *domain[*sql.Tx] {
	t.Helper()
	return (&domain[*sql.Tx]{
		Database: ledger.OnSQL(t, direct, s), t: t, dialect: dialect, conn: guard.SQL(direct), db: guard.SQLDatabase(by, dialect),
		of: func(tx *sql.Tx) guard.Conn { return guard.SQL(tx) },
	}).createTables()
}

func onSQLite(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	db := ledger.OpenSQLite(t, filepath.Join(t.TempDir(), "domain.db"))
	t.Attr("engine", "sqlite")
	return onSQL(t, db, db, guard.SQLite, sqlite.New(db, sqlite.Options{}))
}

func onPostgres(t *testing.T) *domain[pgx.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	proxy, url := realtest.NewProxy(t, server.Addr()), server.Database(t)
	direct := ledger.OpenPostgres(t, url)
	return (&domain[pgx.Tx]{
		Database: ledger.OnPgx(t, direct, must(postgres.New(direct, postgres.Options{}))), t: t, dialect: guard.PostgreSQL,
		conn: guard.Pgx(direct), db: guard.PgxDatabase(ledger.Pool(t, proxy.URL(url))), proxy: proxy,
		of: func(tx pgx.Tx) guard.Conn { return guard.Pgx(tx) },
	}).createTables()
}

func onPostgresSQL(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	proxy, url := realtest.NewProxy(t, server.Addr()), server.Database(t)
	direct := ledger.OpenPostgresSQL(t, url)
	d := onSQL(t, direct, ledger.SQL(t, "pgx", proxy.URL(url)), guard.PostgreSQL, must(postgres.NewSQL(direct, postgres.Options{})))
	d.proxy = proxy
	return d
}

func onMariaDB(t *testing.T) *domain[*sql.Tx] {
	t.Helper()
	server := realtest.MariaDB(t)
	name := server.Database(t)
	proxy := realtest.NewMySQLProxy(t, server.Addr())
	records := must(mysql.New(ledger.OpenMariaDB(t, name), mysql.Options{}))
	d := onSQL(t, ledger.SQL(t, "mysql", name), ledger.SQL(t, "mysql", proxy.DSN(name)), guard.MySQL, records)
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
