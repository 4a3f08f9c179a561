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

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// place is where a database is that several processes share.
type place struct {
	Engine string // sqlite or postgres
	At     string // path or address
}

// site is a process's way into that database.
type site[Tx any] struct {
	store store.TxStore[Tx]
	// exec runs a statement in a transaction of the store.
	exec func(ctx context.Context, tx Tx, statement string, args ...any) error
	// transact runs fn in a transaction of its own, as the domain's code does.
	transact func(ctx context.Context, fn func(context.Context, Tx) error) error
	// tables reads and writes beside the store.
	tables *sql.DB
	close  func()
}

// effect writes, within tx, that a task had its effect.
func (s *site[Tx]) effect(ctx context.Context, tx Tx, e effect) error {
	return s.exec(ctx, tx, insertEffect, e.key, e.attempt, int64(e.owner), e.process)
}

// note writes a row beside the store.
func (s *site[Tx]) note(ctx context.Context, statement string, args ...any) error {
	return insist(ctx, func() error {
		_, err := s.tables.ExecContext(ctx, statement, args...)
		return err
	})
}

// insist tries until it succeeds, for a minute: a SQLite that many write to may
// have no time for one of them.
func insist(ctx context.Context, try func() error) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil || bounded.Err() != nil {
			return err
		}
		after(bounded, 10*time.Millisecond)
	}
}

// conns bounds the connections of one process.
const conns = 24

func openPostgres(ctx context.Context, at string) (*site[pgx.Tx], error) {
	config, err := pgxpool.ParseConfig(at)
	if err != nil {
		return nil, err
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	tables, err := sql.Open("pgx", at)
	if err != nil {
		pool.Close()
		return nil, err
	}
	tables.SetMaxOpenConns(8)
	records, err := postgres.New(pool, postgres.Options{})
	return &site[pgx.Tx]{
		store: records,
		exec: func(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		},
		transact: func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
		},
		tables: tables,
		close:  func() { _ = tables.Close(); pool.Close() },
	}, err
}

func openSQLite(_ context.Context, at string) (*site[*sql.Tx], error) {
	db, err := sqlite.Open(at)
	if err != nil {
		return nil, err
	}
	return &site[*sql.Tx]{
		store: sqlite.New(db),
		exec: func(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		},
		transact: func(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
			var tx *sql.Tx
			err := insist(ctx, func() (err error) {
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
		tables: db,
		close:  func() { _ = db.Close() },
	}, nil
}

// inPostgres makes a database of its own, with its tables, on a server of its own.
func inPostgres(t *testing.T) (place, *site[pgx.Tx]) {
	t.Helper()
	return inPostgresAt(t, realtest.OwnPostgres(t, "max_connections=300"))
}

// inPostgresAt makes a database of its own, with its tables, on a server.
func inPostgresAt(t *testing.T, server *realtest.Server) (place, *site[pgx.Tx]) {
	t.Helper()
	t.Attr("engine", "postgres")
	at := server.Database(t)
	pool, err := pgxpool.New(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := migrate.Postgres(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := openPostgres(t.Context(), at)
	return place{"postgres", at}, laid(t, s, err, postgresTables())
}

// inSQLite makes a file of its own, with its tables.
func inSQLite(t *testing.T) (place, *site[*sql.Tx]) {
	t.Helper()
	t.Attr("engine", "sqlite")
	at := filepath.Join(t.TempDir(), "tasks.db")
	s, err := openSQLite(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate.SQLite(t.Context(), s.tables); err != nil {
		t.Fatal(err)
	}
	return place{"sqlite", at}, laid(t, s, nil, sqliteTables())
}

// laid gives the site its tables, and closes it when the test ends.
func laid[Tx any](t *testing.T, s *site[Tx], err error, tables []string) *site[Tx] {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	for _, statement := range tables {
		if _, err := s.tables.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return s
}

// visit opens the place and lets a process do its work there.
func visit(ctx context.Context, c child) error {
	switch c.Place.Engine {
	case "postgres":
		s, err := openPostgres(ctx, c.Place.At)
		return play(ctx, c, s, err)
	case "sqlite":
		s, err := openSQLite(ctx, c.Place.At)
		return play(ctx, c, s, err)
	default:
		return fmt.Errorf("there is no engine %q", c.Place.Engine)
	}
}

// play does the work that c is told to do.
func play[Tx any](ctx context.Context, c child, s *site[Tx], err error) error {
	if err != nil {
		return err
	}
	defer s.close()
	m := newMarks(s.tables, c.Name)
	counted := make(chan error)
	counting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { counted <- m.run(counting) }()
	err = role(ctx, c, s, m)
	cancel()
	return errors.Join(err, <-counted)
}
