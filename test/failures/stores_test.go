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
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

// database is a store with a table of effects in the same database.
type database[Tx any] struct {
	storetest.Subject[Tx]

	// Lease is long enough for an undisturbed attempt.
	Lease time.Duration
}

func TestMemory(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	l := &effectLedger{store: s}
	failureClasses(t, database[*memory.Tx]{
		Subject: storetest.Subject[*memory.Tx]{Store: s, Effect: l.effect, Effects: l.effects},
		Lease:   500 * time.Millisecond,
	})
}

// effectLedger counts effects in a memory store: each effect is a separate value,
// so that two effects count as two.
type effectLedger struct {
	store *memory.Store
	tried atomic.Int64
}

func (l *effectLedger) effect(_ context.Context, tx *memory.Tx, key string) error {
	return tx.Put(fmt.Sprintf("%s#%d", key, l.tried.Add(1)), nil)
}

func (l *effectLedger) effects(key string) (n int) {
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
	failureClasses(t, database[*sql.Tx]{
		Subject: storetest.Subject[*sql.Tx]{
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
