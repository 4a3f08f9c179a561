package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/sqlite"
)

func TestContract(t *testing.T) {
	t.Attr("engine", "sqlite")
	whole := template(t, open(t))
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[*sql.Tx] {
		db, err := sqlite.Open(whole.copy(t))
		return subject(t, db, err)
	})
}

func TestContractOnAPlainDatabase(t *testing.T) {
	whole := template(t, plain(t))
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[*sql.Tx] {
		db, err := sql.Open("sqlite", whole.copy(t)+plainSettings)
		return subject(t, db, err)
	})
}

// file is a database's content: the suite needs hundreds of new databases, and a
// copy is quicker than a migration.
type file []byte

func template(t *testing.T, db *sql.DB) file {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template.db")
	mustExec(t, db, `VACUUM INTO ?`, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func (f file) copy(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "semel.db")
	if err := os.WriteFile(path, f, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// subject has less patience than users have, because the suite often has a
// transaction wait for itself.
func subject(t testing.TB, db *sql.DB, err error) semeltest.Subject[*sql.Tx] {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := sqlite.New(db)
	s.SetPatience(200 * time.Millisecond)
	return semeltest.Subject[*sql.Tx]{
		Store:   s,
		Effect:  func(ctx context.Context, tx *sql.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, db, key) },
	}
}
