package ops_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// databaseCommands are the commands that need an existing database.
func databaseCommands() [][]string {
	id := strings.Repeat("0", 32)
	return [][]string{
		{"ls"},
		{"stats"},
		{"purge"},
		{"purge", "--dry-run"},
		{"show", id},
		{"resolve", id, "--to", "failed", "--reason", "r"},
		{"redrive", id, "--reason", "r"},
		{"cancel", id, "--reason", "r"},
		{"reschedule", id, "--delay", "0", "--reason", "r"},
		{"partitions", "list"},
		{"partitions", "divide"},
		{"partitions", "ahead"},
		{"partitions", "drop", "--keep", "24h"},
	}
}

// TestNoDatabaseIsCreatedByMistake: a mistyped name creates no file, and a
// database of another program stays unchanged.
func TestNoDatabaseIsCreatedByMistake(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.db")
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db := check.Must(sql.Open("sqlite", foreign))(t)
	check.Must(db.ExecContext(t.Context(), `CREATE TABLE mine (x)`))(t)
	db.Close()
	before := read(t, foreign)
	empty, text := writeFile(t, ""), writeFile(t, "this is a letter, not a database")
	for _, args := range databaseCommands() {
		on := func(db string) result { return run(t, append(args, "--db", db)...) }
		on("sqlite:"+none).want(t, exit.Usage, "there is no database")
		on("sqlite:"+foreign).want(t, exit.Failed, "semel migrate")
		on("sqlite:"+empty).want(t, exit.Failed, "semel migrate")
		on("sqlite:"+text).want(t, exit.Usage, "not a SQLite database")
		on("sqlite:"+t.TempDir()).want(t, exit.Usage, "directory")
		on("sqlite:").want(t, exit.Usage, "--db must be")
		on("oracle://u:s3cret@h/d").want(t, exit.Usage, "--db must be")
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a database was created")
	}
	check.Equal(t, read(t, foreign), before, "the database of another program was changed")
	if files, err := os.ReadDir(filepath.Dir(foreign)); err != nil || len(files) != 1 {
		t.Errorf("the directory has %v, %v, want no file", files, err)
	}
	check.Equal(t, read(t, empty), "", "an empty file was turned into a database")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := check.Must(os.ReadFile(path))(t)
	return string(text)
}

// TestMigrateUnreachableDatabase: the error names the flag.
func TestMigrateUnreachableDatabase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sqlite:" + filepath.Join(t.TempDir(), "none", "x.db"): "no such file",
		"sqlite::memory:":                    "--db",
		"sqlite:" + writeFile(t, "a letter"): "not a SQLite database",
		"postgres://u:s3cret@h:99999999/d":   "--db",
		"mysql://u:s3cret@127.0.0.1:1/":      "--db",
		"mysql:u:s3cret":                     "--db",
		"mysql://u:s3cret@h:x/d":             "--db",
	} {
		got := run(t, "migrate", "--db", name)
		got.want(t, exit.Usage, want)
		if strings.Contains(got.errs, "s3cret") {
			t.Errorf("migrate --db %s prints the password: %q", name, got.errs)
		}
	}
	run(t, "migrate").want(t, exit.Usage, "--db is required")
}

// TestUnreachableServer: the exit code is Unavailable, not Failed. No output has a password.
func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	for scheme, bare := range map[string]string{
		"postgres": realtest.Postgres(t).Database(t), "mysql": urlOf(t, realtest.MariaDB(t).Database(t)),
	} {
		for _, args := range append(databaseCommands(), []string{"migrate"}) {
			got := run(t, append(args, "--db", scheme+"://u:s3cret@127.0.0.1:1/d")...)
			got.want(t, exit.Unavailable, "connect")
			if strings.Contains(got.errs, "s3cret") {
				t.Errorf("semel %v prints the password: %q", args, got.errs)
			}
			if args[0] != "migrate" && (scheme == "postgres" || args[0] != "partitions") {
				run(t, append(args, "--db", bare)...).want(t, exit.Failed, "semel migrate")
			}
		}
		if out := must(t, "migrate", "--db", bare); !strings.HasPrefix(out, scheme+"://") || strings.Contains(out, "@") {
			t.Errorf("migrate wrote %q, want the database's name without user and password", out)
		}
		must(t, "stats", "--db", bare)
	}
}

// TestDatabaseFromEnvironment: help does not print the variable's value.
func TestDatabaseFromEnvironment(t *testing.T) {
	s := newSQLite(t)
	t.Setenv("SEMEL_DB", s.db)
	must(t, "stats")
	run(t, "stats", "--db", s.db+".none").want(t, exit.Usage, "there is no database")
	if help := must(t, "stats", "--help"); strings.Contains(help, s.db) {
		t.Errorf("help prints the value of $SEMEL_DB:\n%s", help)
	}
	t.Setenv("USER", "")
	id := s.makeInDoubt(t, callOf("k"))
	s.runOn(t, "resolve", id, "--to", "failed", "--reason", "r").want(t, exit.Usage, "--actor is required")
	s.runOn(t, "resolve", id, "--to", "failed").want(t, exit.Usage, "--reason is required: it is kept as a note; --actor is required")
}
