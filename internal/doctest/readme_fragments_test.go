package doctest_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// The types that the README's fragment uses.
type (
	newGroup struct{ Name string }
	Group    struct{ ID int64 }
)

// fragment contains the README's fragment, so that it is compiled and run.
// TestReadmeFragmentsRun compares the two.
func fragment(ctx context.Context, engine *semel.Engine[*sql.Tx], createGroup *semel.Operation[newGroup], userID, key string, req newGroup,
	insertGroup func(context.Context, *sql.Tx, newGroup) (Group, error),
) (Group, bool, error) {
	group, replayed, err := semel.DoTx(ctx, engine, createGroup.Call(semel.ScopeOf(userID), key, req),
		func(ctx context.Context, tx *sql.Tx) (Group, error) { return insertGroup(ctx, tx, req) })
	return group, replayed, err
}

// TestReadmeFragmentsRun finds every Go fragment of the README in a test file, and runs
// it. It also runs the fragments of docs/choosing.md on batches, clients, tasks and
// messages.
func TestReadmeFragmentsRun(t *testing.T) {
	here := compiledFragments(t)
	found := 0
	for _, b := range blocks(read(t, english)) {
		if b.language != "go" || strings.Contains(b.text, "package main") {
			continue
		}
		found++
		if !strings.Contains(here, flat(b.text)) {
			t.Errorf("no test compiles the README's fragment:\n%s", b.text)
		}
	}
	if found != 3 {
		t.Errorf("the README has %d fragments, want the three that are run here", found)
	}
	t.Run("a call", runFragment)
	t.Run("PostgreSQL", runPostgresFragment)
	t.Run("database/sql", runPostgresSQLFragment)
	t.Run("a batch", runBatchFragment)
	t.Run("a client", runClientFragment)
	t.Run("tasks", runTaskFragment)
	t.Run("messages", runMessageFragment)
}

// runFragment calls twice with one key.
func runFragment(t *testing.T) {
	t.Helper()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "groups.db")))(t)
	t.Cleanup(func() { db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	engine := check.Must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{}))(t)
	createGroup := semel.Define("create_group", semel.OperationOptions[newGroup]{})
	made := int64(0)
	insertGroup := func(context.Context, *sql.Tx, newGroup) (Group, error) {
		made++
		return Group{ID: made}, nil
	}
	for _, wantReplay := range []bool{false, true} {
		got, replayed, err := fragment(t.Context(), engine, createGroup, "ann", "the-key", newGroup{"friends"}, insertGroup)
		if err != nil || replayed != wantReplay || got.ID != 1 {
			t.Errorf("the fragment returned %+v, %t, %v, want the first group, %t", got, replayed, err, wantReplay)
		}
	}
}

// flat is the text with each run of white space as one space.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
