package mysql_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
)

// Each statement reads the index that it needs, whether the table is empty, or filled
// and analyzed.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	checkPlans(t, db)
	s := newStore(t, db)
	for batch := range 5 {
		changes := make([]store.Change, 1000)
		for i := range changes {
			changes[i] = create(fmt.Sprint(batch, i), store.States()[i%5], 1)
			changes[i].To.Due, changes[i].To.Expire = -1, -1
		}
		check.Must(s.Swap(t.Context(), changes))(t)
	}
	mustExec(t, db, `ANALYZE TABLE semel_records PERSISTENT FOR ALL`)
	checkPlans(t, db)
}

func checkPlans(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, st := range mysql.Statements() {
		rows, err := db.QueryContext(t.Context(), `EXPLAIN `+st.Text, st.Args...)
		check.Require(t, err, "%s", st.Text)
		found := false
		for rows.Next() {
			var id, table, kind, key, extra sql.NullString
			var unused any
			check.Require(t, rows.Scan(&id, &unused, &table, &kind, &unused, &key, &unused, &unused, &unused, &extra))
			switch {
			case strings.Contains(extra.String, "Impossible WHERE noticed after reading const tables"):
				found = true // by the primary key
				continue
			case table.String != "semel_records" && table.String != "semel_notes" && table.String != "semel_guard":
				continue
			case key.String != st.Index, kind.String == "ALL", kind.String == "index" && st.Index != "PRIMARY",
				strings.Contains(extra.String, "filesort") && !st.Sorts:
				t.Errorf("%s\n reads %s by %s with %s (%s), want %s", st.Text, table.String, kind.String, key.String, extra.String, st.Index)
			}
			found = true
		}
		if err := rows.Err(); err != nil || !found {
			t.Errorf("%s: no plan, %v", st.Text, err)
		}
		rows.Close()
	}
}
