package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// childPath is the environment variable with the database that a child process
// of the test binary migrates.
const childPath = "SEMEL_MIGRATE_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childPath)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := runChild(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild prints a line when it is ready, and migrates after its standard
// input has been closed.
func runChild(path string) error {
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	ctx := context.Background()
	if strings.HasPrefix(path, "postgres://") {
		return migratePostgres(ctx, path)
	}
	db, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); err != nil {
		return err
	}
	_, err = sqlite.New(db, sqlite.Options{}).Capabilities(ctx)
	return err
}

func migratePostgres(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pgmigrate.Up(ctx, pool, pgmigrate.Options{}); err != nil {
		return err
	}
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return err
	}
	_, err = s.Capabilities(ctx)
	return err
}

type child struct {
	*exec.Cmd

	ready io.Reader
	start io.Closer
}

func newChild(t *testing.T, path string) child {
	t.Helper()
	c := child{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.Env = append(os.Environ(), childPath+"="+path)
	c.Stderr = os.Stderr
	var err error
	if c.ready, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if c.start, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	check.Require(t, c.Start())
	return c
}

// TestTenConcurrentProcesses: ten processes start at once on a new file. One of
// them creates the tables, and all of them find the tables afterwards.
func TestTenConcurrentProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	mustMigrateAtOnce(t, path)
	db := check.Must(sqlite.Open(path))(t)
	defer db.Close()
	mustHaveRunOnce(t, db)
}

func TestTenConcurrentProcessesOnPostgres(t *testing.T) {
	t.Attr("engine", "postgres")
	url := realtest.Postgres(t).Database(t)
	mustMigrateAtOnce(t, url)
	db := check.Must(sql.Open("pgx", url))(t)
	defer db.Close()
	mustHaveRunOnce(t, db)
}

// mustHaveRunOnce requires that each migration has run once.
func mustHaveRunOnce(t *testing.T, db *sql.DB) {
	t.Helper()
	var rows, versions, newest int
	const read = `SELECT count(*), count(DISTINCT version_id), max(version_id) FROM semel_migrations`
	check.Require(t, db.QueryRowContext(t.Context(), read).Scan(&rows, &versions, &newest))
	if rows != newest || versions != newest {
		t.Errorf("%d migrations with %d versions are recorded, want each up to %d once", rows, versions, newest)
	}
}

func mustMigrateAtOnce(t *testing.T, path string) {
	t.Helper()
	var children [10]child
	for i := range children {
		children[i] = newChild(t, path)
	}
	for i, c := range children {
		var word string
		if _, err := fmt.Fscan(c.ready, &word); err != nil || word != "ready" {
			t.Fatalf("child %d wrote %q, %v, want the line ready", i, word, err)
		}
	}
	for _, c := range children {
		check.NoError(t, c.start.Close())
	}
	for i, c := range children {
		check.NoError(t, c.Wait(), "child %d", i)
	}
}
