package migrate_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/migrate"
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
	if err := migrate.SQLite(ctx, db); err != nil {
		return err
	}
	_, err = sqlite.New(db).Capabilities(ctx)
	return err
}

func migratePostgres(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate.Postgres(ctx, pool); err != nil {
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
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTenConcurrentProcesses: ten processes start at once on a new file. One of
// them creates the tables, and all of them find the tables afterwards.
func TestTenConcurrentProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	mustMigrateAtOnce(t, path)
	mustBeMigratedOnce(t, open(t, path))
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
		if err := c.start.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("child %d: %v", i, err)
		}
	}
}
