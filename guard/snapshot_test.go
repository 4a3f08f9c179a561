package guard_test

import (
	"strings"
	"testing"

	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
)

// TestInsertInAnOldSnapshot: on MariaDB a transaction does not see a row that was committed after its first
// read, unless Select locks it.
func TestInsertInAnOldSnapshot(t *testing.T) {
	t.Parallel()
	d := onMariaDB(t)
	tx := d.Begin()
	defer func() { _ = tx.Rollback() }()
	check.Require(t, d.ExecTx(t.Context(), tx, `SELECT id FROM users`))
	bob := user{"bob", "bob@example.com", "another"}
	_, _, err := guard.Insert(t.Context(), d.conn, newUser(d, bob))
	check.Require(t, err)
	n := newUser(d, user{"bob", "bob@example.com", "this"})
	if _, _, err = guard.Insert(t.Context(), d.of(tx), n); err == nil || !strings.Contains(err.Error(), "old snapshot") {
		t.Errorf("Insert = %v, want an error that names the snapshot", err)
	}
	n.Select = d.query(`SELECT id, mail, made_by FROM users WHERE id = ? FOR UPDATE`, "bob")
	row, replayed, err := guard.Insert(t.Context(), d.of(tx), n)
	check.NoError(t, err, "with a lock")
	if row != bob || !replayed {
		t.Errorf("Insert = %v, %v, want the row that the other caller has committed", row, replayed)
	}
}
