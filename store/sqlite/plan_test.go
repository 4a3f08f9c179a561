package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// No statement reads or sorts a whole table, whether the tables are empty, or
// filled and analyzed.
func TestPlans(t *testing.T) {
	db := open(t)
	checkPlans(t, db)
	s := sqlite.New(db, sqlite.Options{})
	for batch := range 3 {
		changes := make([]store.Change, 1000)
		for i := range changes {
			changes[i] = create(fmt.Sprint(batch, i), store.States()[i%5], 1)
			changes[i].To.Due, changes[i].To.Expire = -1, -1
		}
		check.Must(s.Swap(t.Context(), changes))(t)
	}
	mustExec(t, db, `ANALYZE`)
	checkPlans(t, db)
}

func checkPlans(t *testing.T, db *sql.DB) {
	t.Helper()
	seen := make(map[string]bool)
	for _, text := range sqlite.Statements() {
		if strings.HasPrefix(text, "SAVEPOINT") || strings.HasPrefix(text, "RELEASE") || strings.HasPrefix(text, "ROLLBACK") {
			continue
		}
		plan := explain(t.Context(), t, db, text)
		for _, step := range plan {
			seen[step] = true
			if strings.HasPrefix(step, "SCAN semel_records") || strings.HasPrefix(step, "SCAN semel_notes") ||
				strings.Contains(step, "TEMP B-TREE") && !strings.Contains(text, "semel_notes") {
				t.Errorf("%s\n is done by %s", text, step)
			}
		}
	}
	for _, index := range []string{"semel_due (state=? AND due<?)", "semel_due (state=? AND due>?)", "semel_queue (operation=? AND priority=? AND due<?)", "semel_expires (expires<?)", "semel_rare (state=? AND id>?)", "sqlite_autoindex_semel_records_1 (id=?)"} {
		found := false
		for step := range seen {
			found = found || strings.Contains(step, index)
		}
		if !found {
			t.Errorf("no statement uses %s: %v", index, seen)
		}
	}
}

func explain(ctx context.Context, t *testing.T, db *sql.DB, text string) []string {
	t.Helper()
	args := make([]any, strings.Count(strings.ReplaceAll(text, "?1", ""), "?")+min(1, strings.Count(text, "?1")))
	rows, err := db.QueryContext(ctx, `EXPLAIN QUERY PLAN `+text, args...)
	check.Require(t, err, "%s", text)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		check.Require(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	check.Require(t, rows.Err())
	return plan
}

// The first call of a store prepares its statements and reads the database for
// that. Like every later call it waits for a connection that excludes readers, and
// returns Busy in the end.
func TestFirstCallWaitsForALock(t *testing.T) {
	t.Parallel()
	db := plain(t) // without WAL, a writer excludes readers
	lock, err := db.Conn(t.Context())
	check.Require(t, err)
	defer lock.Close()
	for _, text := range []string{`BEGIN EXCLUSIVE`, `INSERT INTO effects VALUES ('held')`} {
		check.Must(lock.ExecContext(t.Context(), text))(t)
	}
	s := sqlite.New(db, sqlite.Options{})
	c := create("k", store.Succeeded, 1)
	answers, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Busy {
		t.Errorf("Swap = %+v, %v, want Busy: the database is locked", answers, err)
	}
	check.Must(lock.ExecContext(t.Context(), `ROLLBACK`))(t)
	answers, err = s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		t.Errorf("Swap = %+v, %v, want it applied", answers, err)
	}
}
