package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A store leaves nothing behind in a bubble, or the bubble would not end.
func TestABubbleEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := migrate.SQLite(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		inForce(t, sqlite.New(db), firstClaims("one"), true)
		inForce(t, sqlite.New(db), firstClaims("two", "three"), true)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A bubble's commit is not given to a goroutine outside it, for which its time would
// not wait.
func TestABubbleWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	s := sqlite.New(open(t))
	inForce(t, s, firstClaims("outside"), true)
	synctest.Test(t, func(t *testing.T) {
		inForce(t, s, firstClaims("inside"), true)
		inForce(t, s, firstClaims("inside too", "together"), true)
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
