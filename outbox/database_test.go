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
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// database is a database with an outbox, and with a table of the domain.
type database[Tx any] struct {
	t     *testing.T
	store store.TxStore[Tx]
	begin func() transaction[Tx]
	// insert writes to the table of the domain.
	insert func(ctx context.Context, tx Tx) error
	// oneWriter: a transaction that writes excludes all others.
	oneWriter bool
	// hold opens a transaction that has nothing to do with the outbox, until the function
	// that it returns is called.
	hold func() (end func())
	// open counts the open transactions of this database. Nil: a node sees only its own.
	open func() int
	scan func(dest any, text string)
	exec func(text string)
}

// transaction is one of a program.
type transaction[Tx any] struct {
	tx               Tx
	commit, rollback func()
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
	d.scan(&n, `SELECT count(*) FROM `+table)
	return n
}

func onSQL(t *testing.T, db *sql.DB, s store.TxStore[*sql.Tx]) *database[*sql.Tx] {
	t.Helper()
	d := &database[*sql.Tx]{
		t: t, store: s,
		begin: func() transaction[*sql.Tx] {
			t.Helper()
			tx := check.Must(db.BeginTx(context.WithoutCancel(t.Context()), nil))(t)
			return transaction[*sql.Tx]{tx, func() { t.Helper(); check.Require(t, tx.Commit()) }, func() { t.Helper(); check.Require(t, tx.Rollback()) }}
		},
		insert: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO domain (id) VALUES (1)`)
			return err
		},
		scan: func(dest any, text string) {
			t.Helper()
			check.Require(t, db.QueryRowContext(context.WithoutCancel(t.Context()), text).Scan(dest))
		},
		exec: func(text string) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), text)
			check.Require(t, err)
		},
	}
	d.hold = func() func() {
		t.Helper()
		x := d.begin()
		check.Require(t, d.insert(t.Context(), x.tx))
		return x.rollback
	}
	d.exec(`CREATE TABLE domain (id INT NOT NULL)`)
	return d
}

func onSQLite(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	t.Attr("engine", "sqlite")
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "outbox.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
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
	elsewhere := newPool(t, server.Database(t))
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

func newPool(t *testing.T, url string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := check.Must(pgxpool.ParseConfig(url))(t)
	config.MaxConns = 16
	for _, do := range configure {
		do(config)
	}
	pool := check.Must(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(pool.Close)
	return pool
}

func onPostgres(t *testing.T) *database[pgx.Tx] {
	t.Helper()
	return onPostgresOf(t, realtest.Postgres(t))
}

func onPostgresOf(t *testing.T, server *realtest.Server, configure ...func(*pgxpool.Config)) *database[pgx.Tx] {
	t.Helper()
	pool := newPool(t, server.Database(t), configure...)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	ctx := context.WithoutCancel(t.Context())
	d := &database[pgx.Tx]{
		t: t, store: check.Must(postgres.New(pool, postgres.Options{}))(t),
		begin: func() transaction[pgx.Tx] {
			t.Helper()
			tx := check.Must(pool.Begin(ctx))(t)
			return transaction[pgx.Tx]{tx, func() { t.Helper(); check.Require(t, tx.Commit(ctx)) }, func() { t.Helper(); check.Require(t, tx.Rollback(ctx)) }}
		},
		insert: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO domain (id) VALUES (1)`)
			return err
		},
		hold: func() func() { return holdElsewhere(t, server, pool) },
		scan: func(dest any, text string) { t.Helper(); check.Require(t, pool.QueryRow(ctx, text).Scan(dest)) },
		exec: func(text string) {
			t.Helper()
			_, err := pool.Exec(ctx, text)
			check.Require(t, err)
		},
	}
	d.open = func() (n int) { d.scan(&n, openInPostgres); return n }
	d.exec(`CREATE TABLE domain (id INT NOT NULL)`)
	return d
}

func onPostgresSQL(t *testing.T) *database[*sql.Tx] {
	t.Helper()
	server := realtest.Postgres(t)
	url := server.Database(t)
	db := check.Must(sql.Open("pgx", url))(t)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, pgmigrate.UpSQL(t.Context(), db, pgmigrate.Options{}))
	d := onSQL(t, db, check.Must(postgres.NewSQL(db, postgres.Options{}))(t))
	d.hold = func() func() { return holdElsewhere(t, server, newPool(t, url)) }
	d.open = func() (n int) { d.scan(&n, openInPostgres); return n }
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
		d.scan(&n, `SELECT SLEEP(0.15)`) // the table below is not refreshed while it is read more often
		d.scan(&n, `SELECT count(*) FROM information_schema.innodb_trx t
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
