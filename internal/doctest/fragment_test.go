package doctest_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel"
)

// What the README's fragment takes for granted.
type (
	newGroup struct{ Name string }
	Group    struct{ ID int64 }
)

// fragment holds the README's fragment as it stands there, so that it is
// compiled. TestReadmeFragmentsCompile compares the two.
func fragment(ctx context.Context, engine *semel.Engine[*sql.Tx], createGroup *semel.Operation[newGroup], userID, key string, req newGroup,
	insertGroup func(context.Context, *sql.Tx, newGroup) (Group, error),
) (Group, bool, error) {
	group, replayed, err := semel.DoTx(ctx, engine, createGroup.Call(semel.ScopeOf(userID), key, req),
		func(ctx context.Context, tx *sql.Tx) (Group, error) { return insertGroup(ctx, tx, req) })
	return group, replayed, err
}

// TestReadmeFragmentsCompile finds every incomplete piece of Go of the README in
// this file.
func TestReadmeFragmentsCompile(t *testing.T) {
	_ = fragment // compiled is all it has to be
	here := flat(read(t, filepath.Join("internal", "doctest", "fragment_test.go")))
	found := 0
	for _, b := range blocks(read(t, english)) {
		if b.language != "go" || strings.Contains(b.text, "package main") {
			continue
		}
		found++
		if !strings.Contains(here, flat(b.text)) {
			t.Errorf("the README's fragment is not compiled here:\n%s", b.text)
		}
	}
	if found == 0 {
		t.Error("the README has no fragment: this test looked at nothing")
	}
}

// flat is text without what indentation and line ends differ in.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
