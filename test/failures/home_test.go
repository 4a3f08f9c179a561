package failures_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/sqlite"
)

// home is a store in its database, with a table of effects beside it.
type home[Tx any] struct {
	semeltest.Subject[Tx]

	// Lease is long enough for an attempt that is not disturbed.
	Lease time.Duration
}

func TestMemory(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	l := &ledger{store: s}
	classes(t, home[*memory.Tx]{
		Subject: semeltest.Subject[*memory.Tx]{Store: s, Effect: l.effect, Effects: l.effects},
		Lease:   500 * time.Millisecond,
	})
}

// ledger counts effects in a memory store: each is a value of its own, so that
// two count as two.
type ledger struct {
	store *memory.Store
	tried atomic.Int64
}

func (l *ledger) effect(_ context.Context, tx *memory.Tx, key string) error {
	return tx.Put(fmt.Sprintf("%s#%d", key, l.tried.Add(1)), nil)
}

func (l *ledger) effects(key string) (n int) {
	for i := range l.tried.Load() {
		if _, committed := l.store.Value(fmt.Sprintf("%s#%d", key, i+1)); committed {
			n++
		}
	}
	return n
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "failures.db"))
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
	classes(t, home[*sql.Tx]{
		Subject: semeltest.Subject[*sql.Tx]{
			Store: sqlite.New(db),
			Effect: func(ctx context.Context, tx *sql.Tx, key string) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO effects (key) VALUES (?)`, key)
				return err
			},
			Effects: func(key string) (n int) {
				row := db.QueryRowContext(context.Background(), `SELECT count(*) FROM effects WHERE key = ?`, key)
				if err := row.Scan(&n); err != nil {
					t.Errorf("count effects: %v", err)
				}
				return n
			},
		},
		Lease: 500 * time.Millisecond,
	})
}
