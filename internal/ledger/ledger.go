// Package ledger gives tests stores with a table of effects in the same database. The
// table has no unique constraint, so that an effect that happens twice counts as two.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	mysqlmigrate "github.com/semelgo/semel/migrate/mysql"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

const createTable = `CREATE TABLE effects (key TEXT NOT NULL)`

// Memory returns a memory store. Each effect is a value of its own.
func Memory(o memory.Options) storetest.Subject[*memory.Tx] {
	return MemoryOf(memory.New(o))
}

// MemoryOf returns the subject of an existing memory store.
func MemoryOf(s *memory.Store) storetest.Subject[*memory.Tx] {
	var tried atomic.Int64
	name := func(key string, n int64) string { return fmt.Sprintf("%s#%d", key, n) }
	return storetest.Subject[*memory.Tx]{
		Store: s,
		Effect: func(_ context.Context, tx *memory.Tx, key string) error {
			return tx.Put(name(key, tried.Add(1)), nil)
		},
		Effects: func(key string) (n int) {
			for i := range tried.Load() {
				if _, committed := s.Value(name(key, i+1)); committed {
					n++
				}
			}
			return n
		},
	}
}

// MemoryBatch makes batches of a memory store. Their statements write effects.
func MemoryBatch(effect func(ctx context.Context, tx *memory.Tx, key string) error) func([]storetest.Statement) memory.Batch {
	return func(all []storetest.Statement) memory.Batch {
		b := make(memory.Batch, len(all))
		for i, s := range all {
			b[i] = func(tx *memory.Tx) error {
				if s.Fails {
					return errors.New("no such table")
				}
				return effect(context.Background(), tx, s.Effect)
			}
		}
		return b
	}
}

// SQLite returns a store in a new file.
func SQLite(tb testing.TB) storetest.Subject[*sql.Tx] {
	tb.Helper()
	db, err := sqlite.Open(filepath.Join(tb.TempDir(), "ledger.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	if err := sqlitemigrate.Up(tb.Context(), db, sqlitemigrate.Options{}); err != nil {
		tb.Fatal(err)
	}
	if _, err := db.ExecContext(tb.Context(), createTable); err != nil {
		tb.Fatal(err)
	}
	return storetest.Subject[*sql.Tx]{
		Store: sqlite.New(db, sqlite.Options{}),
		Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (key) VALUES (?)`, key)
			return err
		},
		Effects: func(key string) (n int) {
			row := db.QueryRowContext(context.Background(), `SELECT count(*) FROM effects WHERE key = ?`, key)
			if err := row.Scan(&n); err != nil {
				tb.Errorf("count effects: %v", err)
			}
			return n
		},
	}
}

// Postgres returns a store in the new database at url. The store reaches it at the
// address by; the effects are counted at url.
func Postgres(tb testing.TB, url, by string, o postgres.Options) storetest.Subject[pgx.Tx] {
	tb.Helper()
	direct := migrated(tb, url)
	s, err := postgres.New(Pool(tb, by), o)
	if err != nil {
		tb.Fatal(err)
	}
	return storetest.Subject[pgx.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx pgx.Tx, key string) error {
			_, err := tx.Exec(ctx, insertEffect, key)
			return err
		},
		Effects: countEffects(tb, direct),
	}
}

const insertEffect = `INSERT INTO effects (key) VALUES ($1)`

func countEffects(tb testing.TB, direct *pgxpool.Pool) func(key string) int {
	tb.Helper()
	return func(key string) (n int) {
		row := direct.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE key = $1`, key)
		if err := row.Scan(&n); err != nil {
			tb.Errorf("count effects: %v", err)
		}
		return n
	}
}

// PostgresSQL is Postgres with a store over package database/sql.
func PostgresSQL(tb testing.TB, url, by string, o postgres.Options) storetest.Subject[*sql.Tx] {
	tb.Helper()
	direct := migrated(tb, url)
	db, err := sql.Open("pgx", by)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	tb.Cleanup(func() { _ = db.Close() })
	s, err := postgres.NewSQL(db, o)
	if err != nil {
		tb.Fatal(err)
	}
	return storetest.Subject[*sql.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, insertEffect, key)
			return err
		},
		Effects: countEffects(tb, direct),
	}
}

// MariaDB returns a store in the new database with that data source name. The store
// reaches it by the other one; the effects are counted directly.
func MariaDB(tb testing.TB, name, by string) storetest.Subject[*sql.Tx] {
	tb.Helper()
	direct, db := openMariaDB(tb, name), openMariaDB(tb, by)
	if err := mysqlmigrate.Up(tb.Context(), direct, mysqlmigrate.Options{}); err != nil {
		tb.Fatal(err)
	}
	if _, err := direct.ExecContext(tb.Context(), `CREATE TABLE effects (k VARCHAR(255) NOT NULL)`); err != nil {
		tb.Fatal(err)
	}
	s, err := mysql.New(db, mysql.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return storetest.Subject[*sql.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (k) VALUES (?)`, key)
			return err
		},
		Effects: func(key string) (n int) {
			row := direct.QueryRowContext(context.Background(), `SELECT count(*) FROM effects WHERE k = ?`, key)
			if err := row.Scan(&n); err != nil {
				tb.Errorf("count effects: %v", err)
			}
			return n
		},
	}
}

func openMariaDB(tb testing.TB, name string) *sql.DB {
	tb.Helper()
	db, err := mysql.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// migrated returns a pool of the database at url, which has all tables then.
func migrated(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool := Pool(tb, url)
	if err := pgmigrate.Up(tb.Context(), pool, pgmigrate.Options{}); err != nil {
		tb.Fatal(err)
	}
	if _, err := pool.Exec(tb.Context(), createTable); err != nil {
		tb.Fatal(err)
	}
	return pool
}

// maxConns is the same on machines with any number of processors.
const maxConns = 12

// Pool connects to url. The pool is closed when the test ends.
func Pool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	config.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}
