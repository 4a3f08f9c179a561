package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A store leaves no goroutine in a synctest bubble; otherwise the bubble would not
// end.
func TestStoreLeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	synctest.Test(t, func(t *testing.T) {
		db := check.Must(sqlite.Open(path))(t)
		check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
		wantApplied(t, sqlite.New(db, sqlite.Options{}), firstClaims("one"), true)
		wantApplied(t, sqlite.New(db, sqlite.Options{}), firstClaims("two", "three"), true)
		check.Require(t, db.Close())
	})
}

// A commit in a bubble does not run on a goroutine outside it, because the bubble's
// time would not wait for that goroutine.
func TestCommitRunsInTheCallersBubble(t *testing.T) {
	t.Parallel()
	s := sqlite.New(open(t), sqlite.Options{})
	wantApplied(t, s, firstClaims("outside"), true)
	synctest.Test(t, func(t *testing.T) {
		wantApplied(t, s, firstClaims("inside"), true)
		wantApplied(t, s, firstClaims("inside too", "together"), true)
	})
}

func firstClaims(keys ...string) []store.Change {
	changes := make([]store.Change, len(keys))
	for i, key := range keys {
		changes[i] = create(key, store.InProgress, 1)
		changes[i].To.Due = time.Hour
	}
	return changes
}
