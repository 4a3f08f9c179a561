package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// database is a database with an outbox, and with a table of the domain.
type database[Tx any] struct {
	ledger.Database[Tx]

	t *testing.T
	// oneWriter: a transaction that writes excludes all others.
	oneWriter bool
	// hold opens a transaction that has nothing to do with the outbox, until the function
	// that it returns is called.
	hold func() (end func())
	// open counts the open transactions of this database. Nil: a node sees only its own.
	open func() int
}

// newDatabase creates the table of the domain.
func newDatabase[Tx any](t *testing.T, d ledger.Database[Tx]) *database[Tx] {
	t.Helper()
	d.Exec(`CREATE TABLE domain (id INT NOT NULL)`)
	return &database[Tx]{Database: d, t: t}
}

// transaction is one of a program.
type transaction[Tx any] struct {
	tx               Tx
	commit, rollback func()
}

func (d *database[Tx]) begin() transaction[Tx] {
	d.t.Helper()
	tx := d.Begin()
	return transaction[Tx]{
		tx,
		func() { d.t.Helper(); check.Require(d.t, d.Commit(tx)) },
		func() { d.t.Helper(); check.Require(d.t, d.Rollback(tx)) },
	}
}

// insert writes to the table of the domain.
func (d *database[Tx]) insert(ctx context.Context, tx Tx) error {
	return d.ExecTx(ctx, tx, `INSERT INTO domain (id) VALUES (1)`)
}

// write appends events in a transaction of its own.
func (d *database[Tx]) write(e *semel.Engine[Tx], events ...outbox.Event) {
	d.t.Helper()
	x := d.begin()
	if err := outbox.AppendTx(d.t.Context(), e, x.tx, events...); err != nil {
		d.t.Error(err)
	}
	x.commit()
	outbox.Kick(e)
}

// rows counts the rows of a table.
func (d *database[Tx]) rows(table string) (n int) {
	d.t.Helper()
	d.Scan(&n, `SELECT count(*) FROM `+table)
	return n
}

func onSQL(t *testing.T, db *sql.DB, s store.TxStore[*sql.Tx]) *database[*sql.Tx] {
	t.Helper()
	d := newDatabase(t, ledger.OnSQL(t, db, s))
	d.hold = func() func() {
		t.Helper()
		x := d.begin()
		check.Require(t, d.insert(t.Context(), x.tx))
		return x.rollback
	}
	return d
}

func onSQLite(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	t.Attr("engine", "sqlite")
	db := ledger.OpenSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
	d := onSQL(t, db, sqlite.New(db, sqlite.Options{}))
	d.oneWriter = true
	d.hold = func() func() { // a transaction that writes would stop every writer, so this one reads
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		conn := check.Must(db.Conn(ctx))(t)
		var n int
		_, err := conn.ExecContext(ctx, `BEGIN DEFERRED`)
		check.Require(t, errors.Join(err, conn.QueryRowContext(ctx, `SELECT count(*) FROM domain`).Scan(&n)))
		return func() {
			_, err := conn.ExecContext(ctx, `ROLLBACK`)
			check.Require(t, errors.Join(err, conn.Close()))
		}
	}
	d.open = func() int {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := db.ExecContext(ctx, `INSERT INTO domain (id) VALUES (2)`); err != nil {
			return 1 // another transaction has the only right to write
		}
		return 0
	}
	return d
}

const openInPostgres = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`

// holdElsewhere opens a transaction in another database of the server, which has a
// transaction ID, and one in this database.
func holdElsewhere(t *testing.T, server *realtest.Server, here *pgxpool.Pool) func() {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	elsewhere := ledger.Pool(t, server.Database(t))
	var all []pgx.Tx
	for _, pool := range []*pgxpool.Pool{elsewhere, here} {
		tx := check.Must(pool.Begin(ctx))(t)
		var id string
		check.Require(t, tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&id))
		all = append(all, tx)
	}
	return func() {
		for _, tx := range all {
			_ = tx.Rollback(ctx)
		}
	}
}

func onPostgres(t *testing.T) *database[pgx.Tx] {
	t.Helper()
	return onPostgresOf(t, realtest.Postgres(t))
}

func onPostgresOf(t *testing.T, server *realtest.Server, configure ...func(*pgxpool.Config)) *database[pgx.Tx] {
	t.Helper()
	pool := ledger.Pool(t, server.Database(t), configure...)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	d := newDatabase(t, ledger.OnPgx(t, pool, check.Must(postgres.New(pool, postgres.Options{}))(t)))
	d.hold = func() func() { return holdElsewhere(t, server, pool) }
	d.open = func() (n int) { d.Scan(&n, openInPostgres); return n }
	return d
}

func onPostgresSQL(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	url := server.Database(t)
	db := ledger.OpenPostgresSQL(t, url)
	d := onSQL(t, db, check.Must(postgres.NewSQL(db, postgres.Options{}))(t))
	d.hold = func() func() { return holdElsewhere(t, server, ledger.Pool(t, url)) }
	d.open = func() (n int) { d.Scan(&n, openInPostgres); return n }
	return d
}

func onMariaDB(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	return onMySQL(t, check.Must(mysql.Open(realtest.MariaDB(t).Database(t)))(t))
}

// onGalera has connections to the nodes of a cluster in turn.
func onGalera(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	d := onMySQL(t, check.Must(mysql.OpenConfig(realtest.InTurn(t, realtest.Galera(t).Database(t))))(t))
	d.open = nil
	return d
}

func onMySQL(t *testing.T, db *sql.DB) *database[*sql.Tx] {
	t.Helper()
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, mysqlmigrate.Up(t.Context(), db, mysqlmigrate.Options{}))
	d := onSQL(t, db, check.Must(mysql.New(db, mysql.Options{}))(t))
	d.open = func() (n int) {
		d.Scan(&n, `SELECT SLEEP(0.15)`) // the table below is not refreshed while it is read more often
		d.Scan(&n, `SELECT count(*) FROM information_schema.innodb_trx t
JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE()`)
		return n
	}
	return d
}

// suite has a test for each kind of transaction.
type suite struct {
	sql func(t *testing.T, d *database[*sql.Tx])
	pgx func(t *testing.T, d *database[pgx.Tx])
}

// onAll runs a test on each database and each handle.
func onAll(t *testing.T, s suite) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); s.sql(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); s.pgx(t, onPostgres(t)) })
	t.Run("postgres database/sql", func(t *testing.T) { t.Parallel(); s.sql(t, onPostgresSQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); s.sql(t, onMariaDB(t)) })
	if !testing.Short() {
		t.Run("galera", func(t *testing.T) { t.Parallel(); s.sql(t, onGalera(t)) })
	}
}

// newEngine returns an engine over s, as each process has one.
func newEngine[Tx any](t *testing.T, s store.TxStore[Tx], o semel.Options) *semel.Engine[Tx] {
	t.Helper()
	o.Survive = store.NoFailure // the test's servers do not wait for the disk
	e := check.Must(semel.New(s, o))(t)
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	return e
}
