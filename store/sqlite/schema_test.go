package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// everyCall makes each of the store's calls and returns their errors.
func everyCall(t *testing.T, s *sqlite.Store, db *sql.DB) map[string]error {
	t.Helper()
	ctx := t.Context()
	fresh := func(call string) store.Change { return create(call, store.InProgress, 1) }
	errs := make(map[string]error)
	_, errs["Swap"] = s.Swap(ctx, []store.Change{fresh("Swap")})
	_, errs["Get"] = s.Get(ctx, []store.ID{fresh("Get").To.ID})
	_, errs["Scan"] = s.Scan(ctx, store.Query{})
	_, errs["Purge"] = s.Purge(ctx, 1)
	_, errs["Dequeue"] = s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1})
	_, errs["Dequeue again"] = s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1, Reread: true})
	_, errs["Capabilities"] = s.Capabilities(ctx)
	acted := fresh("Atomic")
	_, errs["Atomic"] = s.Atomic(ctx, acted.To.ID, true, func(context.Context, *sql.Tx, store.SwapResult) (*store.Change, error) {
		return &acted, nil
	})
	_, errs["SwapNoted"] = s.SwapNoted(ctx, fresh("SwapNoted"), store.Note{})
	_, errs["Notes"] = s.Notes(ctx, fresh("Notes").To.ID)
	_, errs["Salt"] = s.Salt(ctx)
	tx := begin(t, db)
	_, errs["SwapTx"] = s.SwapTx(ctx, tx, []store.Change{fresh("SwapTx")})
	check.NoError(t, tx.Rollback())
	return errs
}

// Without its tables every call's error names the missing tables and the fix, and
// calls work after the fix.
func TestNoSchema(t *testing.T) {
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))(t)
	defer db.Close()
	s := sqlite.New(db, sqlite.Options{})
	for call, err := range everyCall(t, s, db) {
		if !errors.Is(err, sqlite.ErrNoSchema) || !strings.Contains(err.Error(), "migrate/sqlite") {
			t.Errorf("%s without tables fails with %v, want ErrNoSchema, which names the remedy", call, err)
		}
	}
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	mustApply(t, s, create("key", store.InProgress, 1))
}

// Tables can be dropped while the store is used.
func TestSchemaTakenAway(t *testing.T) {
	for _, table := range []string{"semel_records", "semel_notes", "semel_guard", "semel_salt"} {
		db := open(t)
		s := sqlite.New(db, sqlite.Options{})
		mustApply(t, s, create("before", store.InProgress, 1))
		mustExec(t, db, `DROP TABLE `+table)
		errs := everyCall(t, s, db)
		failed := 0
		for call, err := range errs {
			if err == nil {
				continue
			}
			failed++
			check.ErrorIs(t, err, sqlite.ErrNoSchema, "%s without %s fails with", call, table)
		}
		if failed == 0 {
			t.Errorf("without %s every call works", table)
		}
	}
}

// Errors with another cause are not taken for a missing schema.
func TestOtherErrorsAreNotNoSchema(t *testing.T) {
	db := open(t)
	s := sqlite.New(db, sqlite.Options{})
	mustApply(t, s, create("before", store.InProgress, 1))
	check.Require(t, db.Close())
	_, err := s.Swap(t.Context(), []store.Change{create("key", store.InProgress, 1)})
	if err == nil || errors.Is(err, sqlite.ErrNoSchema) {
		t.Errorf("Swap of a closed database fails with %v, want another error", err)
	}
}
