package retention_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	var tried atomic.Int64
	rotations(t, storetest.Subject[*memory.Tx]{
		Store: s,
		Effect: func(_ context.Context, tx *memory.Tx, key string) error {
			return tx.Put(fmt.Sprintf("%s#%d", key, tried.Add(1)), nil)
		},
		Effects: func(key string) (n int) {
			for i := range tried.Load() {
				if _, committed := s.Value(fmt.Sprintf("%s#%d", key, i+1)); committed {
					n++
				}
			}
			return n
		},
	}, true)
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "retention.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := migrate.SQLite(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE effects (key TEXT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	rotations(t, storetest.Subject[*sql.Tx]{
		Store: sqlite.New(db),
		Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (key) VALUES (?)`, key)
			return err
		},
		Effects: func(key string) (n int) {
			if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM effects WHERE key = ?`, key).Scan(&n); err != nil {
				t.Errorf("count effects: %v", err)
			}
			return n
		},
	}, true)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			rotations(t, onPostgres(t, level), level == pgx.ReadCommitted)
		})
	}
}

func onPostgres(t *testing.T, level pgx.TxIsoLevel) storetest.Subject[pgx.Tx] {
	t.Helper()
	config, err := pgxpool.ParseConfig(realtest.Postgres(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := migrate.Postgres(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `CREATE TABLE effects (key text NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.New(pool, postgres.Options{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Subject[pgx.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx pgx.Tx, key string) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
			return err
		},
		Effects: func(key string) (n int) {
			if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM effects WHERE key = $1`, key).Scan(&n); err != nil {
				t.Errorf("count effects: %v", err)
			}
			return n
		},
	}
}
