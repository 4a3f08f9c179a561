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

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

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
	db := OpenSQLite(tb, filepath.Join(tb.TempDir(), "ledger.db"))
	return OnSQL(tb, db, sqlite.New(db, sqlite.Options{})).subject(`key TEXT`, `?`)
}

// Postgres returns a store in the new database at url. The store reaches it at the
// address by; the effects are counted at url.
func Postgres(tb testing.TB, url, by string, o postgres.Options) storetest.Subject[pgx.Tx] {
	tb.Helper()
	direct := OpenPostgres(tb, url)
	return OnPgx(tb, direct, check.Must(postgres.New(Pool(tb, by), o))(tb)).subject(`key TEXT`, `$1`)
}

// PostgresSQL is Postgres with a store over package database/sql.
func PostgresSQL(tb testing.TB, url, by string, o postgres.Options) storetest.Subject[*sql.Tx] {
	tb.Helper()
	direct := OpenPostgresSQL(tb, url)
	return OnSQL(tb, direct, check.Must(postgres.NewSQL(SQL(tb, "pgx", by), o))(tb)).subject(`key TEXT`, `$1`)
}

// MariaDB returns a store in the new database with that data source name. The store
// reaches it by the other one; the effects are counted directly.
func MariaDB(tb testing.TB, name, by string) storetest.Subject[*sql.Tx] {
	tb.Helper()
	direct := OpenMariaDB(tb, name)
	return OnSQL(tb, direct, check.Must(mysql.New(MariaDBPool(tb, by), mysql.Options{}))(tb)).subject(`k VARCHAR(255)`, `?`)
}
