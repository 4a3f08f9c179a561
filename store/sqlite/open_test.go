package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// The settings hold on every connection, not only on the first.
func TestOpenSettingsOnEveryConnection(t *testing.T) {
	db := open(t)
	for range 5 {
		conn := check.Must(db.Conn(t.Context()))(t)
		defer conn.Close() // closed at the end, so that each is another connection
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "2000",
		} {
			var got string
			if err := conn.QueryRowContext(t.Context(), `PRAGMA `+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s = %s, %v, want %s", pragma, got, err, want)
			}
		}
	}
	if n := db.Stats().OpenConnections; n < 5 {
		t.Errorf("%d connections were open, want 5 or more", n)
	}
}

// A transaction has the write lock from its begin on.
func TestOpenBeginsImmediate(t *testing.T) {
	db := open(t)
	begin(t, db)
	conn := connect(t, db)
	mustExec(t, conn, `PRAGMA busy_timeout = 0`)
	if tx, err := conn.BeginTx(t.Context(), nil); !sqlite.IsBusy(err) {
		t.Errorf("a second transaction begins with %v, %v, want a lock in the way", tx, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	check.Require(t, os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600))
	for path, want := range map[string]string{
		"":                                   "empty",
		":memory:":                           "store/memory",
		"file:a.db?mode=memory":              "URI",
		dir:                                  "directory",
		filepath.Join(dir, "no", "semel.db"): "no such file or directory",
		filepath.Join(text, "semel.db"):      "not a directory",
		text:                                 "not a database",
	} {
		db, err := sqlite.Open(path)
		if db != nil || err == nil {
			t.Errorf("Open(%q) = %v, %v, want an error", path, db, err)
			continue
		}
		if got := err.Error(); !strings.Contains(got, want) || !strings.Contains(got, "open sqlite database") || strings.Contains(got, "\n") {
			t.Errorf("Open(%q) fails with %q, want one line that says %q", path, got, want)
		}
	}
}

// The path is a file's name and not a URI, for every character in it.
func TestOpenAnyFileName(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b.db", "100%.db", "%41.db", "ключ.db", "a&b=c;d.db", "a:b"} {
		path := filepath.Join(t.TempDir(), name)
		db, err := sqlite.Open(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		mustExec(t, db, `CREATE TABLE t (x)`)
		check.NoError(t, db.Close())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("Open(%q) has not made that file: %v", path, err)
		}
	}
}

func TestOpenRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	db := check.Must(sqlite.Open("semel.db"))(t)
	defer db.Close()
	if _, err := os.Stat("semel.db"); err != nil {
		t.Error(err)
	}
}

// Many processes may open a new file at once.
func TestConcurrentOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			db, err := sqlite.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			check.NoError(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
		})
	}
	all.Wait()
}

// The level that records survive follows from the connection's settings, and
// Because names the deciding one.
func TestCapabilitiesFollowTheSettings(t *testing.T) {
	type answer struct {
		survives store.Failure
		because  string
	}
	durable := answer{store.PowerLoss, ""}
	for settings, want := range map[string]answer{
		"":                           {store.ProcessEnd, "synchronous is FULL with journal_mode delete"},
		"_pragma=synchronous(EXTRA)": durable,
		"_pragma=journal_mode(WAL)":  durable,
		"_pragma=journal_mode(WAL)&_synchronous=NORMAL":   {store.ProcessEnd, "synchronous is NORMAL with journal_mode wal"},
		"_pragma=journal_mode(WAL)&_synchronous=OFF":      {store.ProcessEnd, "synchronous is OFF with journal_mode wal"},
		"_pragma=journal_mode(WAL)&_synchronous=EXTRA":    durable,
		"_pragma=journal_mode(TRUNCATE)":                  durable,
		"_pragma=journal_mode(MEMORY)&_synchronous=EXTRA": {store.NoFailure, "journal_mode is memory"},
		"_pragma=journal_mode(OFF)&_synchronous=EXTRA":    {store.NoFailure, "journal_mode is off"},
	} {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "semel.db")+"?"+settings)
		check.Require(t, err)
		createTables(t, db)
		caps, err := sqlite.New(db, sqlite.Options{}).Capabilities(t.Context())
		if err != nil || caps.Survives != want.survives || !strings.Contains(caps.SurvivesBecause, want.because) {
			t.Errorf("with %q Capabilities = %+v, %v, want %+v", settings, caps, err, want)
		}
	}
	caps, err := sqlite.New(open(t), sqlite.Options{}).Capabilities(t.Context())
	if err != nil || caps.Survives != store.PowerLoss || caps.SurvivesBecause != "" || caps.Exclusion != store.ExcludesAll || !caps.Linearizable || caps.MaxOutcome != 1<<20 || caps.MaxBatch != 1000 {
		t.Errorf("with Open Capabilities = %+v, %v", caps, err)
	}
}
