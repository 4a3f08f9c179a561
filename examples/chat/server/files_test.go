package server_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// The modes of the chat server.
const (
	inline  = "inline"
	leased  = "leased"
	records = "records" // kept in another file
)

func modes() []string { return []string{inline, leased, records} }

// files are the databases of a server under test.
type files struct {
	mode            string
	domain, records string
}

func newFiles(t *testing.T, mode string) files {
	t.Helper()
	dir := t.TempDir()
	f := files{mode: mode, domain: filepath.Join(dir, "chat.db")}
	f.records = f.domain
	if mode == records {
		f.records = filepath.Join(dir, "records.db")
	}
	return f
}

// args are the flags of a server over the files.
func (f files) args(lease time.Duration) []string {
	args := []string{"-db", "sqlite:" + f.domain, "-lease", lease.String()}
	if f.mode == records {
		return append(args, "-records", "sqlite:"+f.records)
	}
	return append(args, "-mode", f.mode)
}

// openFile opens a database beside the servers that use it.
func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// creations counts how often a group was created under a key. Nothing in the
// table keeps the number at one.
func creations(t *testing.T, domain *sql.DB, owner user, key string) int {
	t.Helper()
	return len(attempts(t, domain, owner, key))
}

// attempts lists the attempts that created a group under a key.
func attempts(t *testing.T, domain *sql.DB, owner user, key string) []int64 {
	t.Helper()
	rows, err := domain.QueryContext(t.Context(),
		`select attempt from creations where owner = ? and key = ? order by rowid`, owner.ID, key)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// recordOf reads the record of a creation.
func (f files) recordOf(t *testing.T, engine *semel.Engine[*sql.Tx], u user, key string) store.Record {
	t.Helper()
	r, _, err := engine.Get(t.Context(), "create_group", scopeOf(u), key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// engine is a person's way to the records.
func (f files) engine(t *testing.T) *semel.Engine[*sql.Tx] {
	t.Helper()
	engine, err := semel.New(sqlite.New(openFile(t, f.records)), semel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}
