//go:build unix

package tasks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // for reading the tables, as "pgx"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// databaseAddress is the address of a database that several processes share.
type databaseAddress struct {
	Engine string // sqlite, postgres or mariadb
	At     string // path or address
}

// database is a process's connection to the database.
type database[Tx any] struct {
	store store.TxStore[Tx]
	// exec runs a statement in a transaction of the store.
	exec func(ctx context.Context, tx Tx, statement string, args ...any) error
	// transact runs fn in a transaction of its own, as the domain's code does.
	transact func(ctx context.Context, fn func(context.Context, Tx) error) error
	// tables reads and writes the tables without the store.
	tables tables
	close  func()
}

// effect writes the effect of a task within tx.
func (s *database[Tx]) effect(ctx context.Context, tx Tx, e effect) error {
	return s.exec(ctx, tx, insertEffect, e.key, e.attempt, int64(e.owner), e.process)
}

// note writes a row without the store.
func (s *database[Tx]) note(ctx context.Context, statement string, args ...any) error {
	return retryWhileBusy(ctx, func() error {
		_, err := s.tables.ExecContext(ctx, statement, args...)
		return err
	})
}

// retryWhileBusy retries for a minute: a SQLite database with many writers may be
// busy for one of them, and a server on a slow machine for any call.
func retryWhileBusy(ctx context.Context, try func() error) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	_ = realtest.Retry(bounded, func() bool { // err says more
		err = try()
		return err == nil
	})
	return err
}

// conns bounds the connections of one process.
const conns = 24

func openPostgres(ctx context.Context, at string) (*database[pgx.Tx], error) {
	config, err := pgxpool.ParseConfig(at)
	if err != nil {
		return nil, err
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	direct, err := sql.Open("pgx", at)
	if err != nil {
		pool.Close()
		return nil, err
	}
	direct.SetMaxOpenConns(8)
	records, err := postgres.New(pool, postgres.Options{})
	return &database[pgx.Tx]{
		store: records,
		exec: func(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		},
		transact: func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
		},
		tables: tables{DB: direct},
		close:  func() { _ = direct.Close(); pool.Close() },
	}, err
}

func openSQLite(_ context.Context, at string) (*database[*sql.Tx], error) {
	db, err := sqlite.Open(at)
	if err != nil {
		return nil, err
	}
	return &database[*sql.Tx]{
		store: sqlite.New(db, sqlite.Options{}),
		exec: func(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		},
		transact: func(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
			var tx *sql.Tx
			err := retryWhileBusy(ctx, func() (err error) {
				tx, err = db.BeginTx(ctx, nil)
				return err
			})
			if err != nil {
				return err
			}
			if err := fn(ctx, tx); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		},
		tables: tables{DB: db},
		close:  func() { _ = db.Close() },
	}, nil
}

// inPostgres creates a database with its tables on a server of its own.
func inPostgres(t *testing.T) (databaseAddress, *database[pgx.Tx]) {
	t.Helper()
	return inPostgresAt(t, realtest.OwnPostgres(t, "max_connections=300"))
}

// inPostgresAt creates a database with its tables on a server.
func inPostgresAt(t *testing.T, server *realtest.Server) (databaseAddress, *database[pgx.Tx]) {
	t.Helper()
	t.Attr("engine", "postgres")
	at := server.Database(t)
	pool, err := pgxpool.New(t.Context(), at)
	check.Require(t, err)
	defer pool.Close()
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}))
	s, err := openPostgres(t.Context(), at)
	return databaseAddress{"postgres", at}, newDatabase(t, s, err, postgresTables())
}

// inSQLite creates a file with its tables.
func inSQLite(t *testing.T) (databaseAddress, *database[*sql.Tx]) {
	t.Helper()
	t.Attr("engine", "sqlite")
	at := filepath.Join(t.TempDir(), "tasks.db")
	s := check.Must(openSQLite(t.Context(), at))(t)
	check.Require(t, sqlitemigrate.Up(t.Context(), s.tables.DB, sqlitemigrate.Options{}))
	return databaseAddress{"sqlite", at}, newDatabase(t, s, nil, sqliteTables())
}

// newDatabase creates the tables, and closes the database when the test ends.
func newDatabase[Tx any](t *testing.T, s *database[Tx], err error, tables []string) *database[Tx] {
	t.Helper()
	check.Require(t, err)
	t.Cleanup(s.close)
	for _, statement := range tables {
		if _, err := s.tables.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return s
}

// openDatabase opens the database for a process and runs its role.
func openDatabase(ctx context.Context, c child) error {
	switch c.Place.Engine {
	case "postgres":
		s, err := openPostgres(ctx, c.Place.At)
		return runRole(ctx, c, s, err)
	case "mariadb":
		s, err := openMariaDB(ctx, c.Place.At)
		return runRole(ctx, c, s, err)
	case "sqlite":
		s, err := openSQLite(ctx, c.Place.At)
		return runRole(ctx, c, s, err)
	default:
		return fmt.Errorf("there is no engine %q", c.Place.Engine)
	}
}

// runRole runs the role of c.
func runRole[Tx any](ctx context.Context, c child, s *database[Tx], err error) error {
	if err != nil {
		return err
	}
	defer s.close()
	m := newCounters(s.tables, c.Name)
	counted := make(chan error)
	counting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { counted <- m.run(counting) }()
	err = role(ctx, c, s, m)
	cancel()
	return errors.Join(err, <-counted)
}
