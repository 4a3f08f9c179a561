package realtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/realtest"
)

// TestPgBouncerSharesConnectionsByTransaction: two clients that are between
// transactions are served by one connection to the server.
func TestPgBouncerSharesConnectionsByTransaction(t *testing.T) {
	t.Parallel()
	s := realtest.Postgres(t)
	through := realtest.PgBouncer(t, s.Database(t))
	pids := make(map[int]bool)
	for range 5 {
		conn := connectIn(t, through, pgx.QueryExecModeExec)
		var pid int
		if err := conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids[pid] = true
	}
	if len(pids) != 1 {
		t.Errorf("five clients were served by %d connections, want 1", len(pids))
	}
}
