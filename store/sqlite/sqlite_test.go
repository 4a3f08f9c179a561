package sqlite_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	runContract(t, open(t), unchanged)
}

func unchanged(s *sqlite.Store) store.TxStore[*sql.Tx] { return s }

func TestContractOnDefaultSettings(t *testing.T) {
	t.Parallel()
	runContract(t, plain(t), unchanged)
}

// runContract empties the tables for each check: the suite needs hundreds of
// stores, and this is faster than new databases.
func runContract(t *testing.T, db *sql.DB, as func(*sqlite.Store) store.TxStore[*sql.Tx]) {
	t.Helper()
	s := sqlite.New(db)
	// A shorter wait than in production, because the suite often has a transaction
	// wait for itself.
	s.SetPatience(200 * time.Millisecond)
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] {
		t.Helper()
		empty(t, db)
		return storetest.Subject[*sql.Tx]{
			Store:   as(s),
			Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
			Effects: func(key string) int { return effects(t, db, key) },
			Begin: map[string]storetest.BeginFunc[*sql.Tx]{
				"default": func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
					tx, err := db.BeginTx(ctx, nil)
					return tx, tx.Commit, tx.Rollback, err
				},
			},
		}
	})
}

// empty removes the records of a check.
func empty(t testing.TB, db *sql.DB) {
	t.Helper()
	tx := begin(t, db)
	for _, table := range []string{"semel_records", "semel_notes", "semel_guard", "effects"} {
		mustExec(t, tx, `DELETE FROM `+table)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
