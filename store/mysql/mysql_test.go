package mysql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "mysql")
	db := connect(t, database(t))
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] { return subject(t, db) })
}

// MySQL gets the statements of a script one by one.
func TestContractOneByOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "mysql")
	db := connect(t, database(t))
	newStore(t, db).SendOneByOne()
	storetest.Run(t, func(t testing.TB) storetest.Subject[*sql.Tx] { return subject(t, db) })
}

// subject empties the tables: the suite needs hundreds of stores, and that is quicker
// than new databases.
func subject(t testing.TB, db *sql.DB) storetest.Subject[*sql.Tx] {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"semel_records", "semel_notes", "semel_guard", "effects"} {
		mustExec(t, tx, `DELETE FROM `+table)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, db)
	return storetest.Subject[*sql.Tx]{
		Store:   s,
		Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, db, key) },
		Batches: storetest.BatchesOf(s, batchOf),
	}
}

// batchOf has an effect in each statement, or fails.
func batchOf(all []storetest.Statement) *mysql.Batch {
	b := &mysql.Batch{}
	for _, s := range all {
		if s.Fails {
			b.Queue(`INSERT INTO effects (k) VALUES (NULL)`)
		} else {
			b.Queue(`INSERT INTO effects (k) VALUES (?)`, s.Effect)
		}
	}
	return b
}
