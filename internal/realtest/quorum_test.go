package realtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestCommitOfAQuorumWaitsForAStandby: without standbys a commit does not end, and a
// failover keeps what was committed.
func TestCommitOfAQuorumWaitsForAStandby(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	q := realtest.PostgresQuorum(t)
	database := q.Primary().Database(t)
	execute(t, database, "create table kept (id int); insert into kept values (1)")

	restore := q.Isolate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn := connect(t, database)
	if _, err := conn.Exec(ctx, "insert into kept values (2)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit without standbys ends with %v", err)
	}
	restore()
	execute(t, database, "insert into kept values (3)")

	clients := q.URL(t, database)
	q.Failover(t)
	execute(t, clients, "insert into kept values (4)")
	check.Equal(t, count(t, clients, "kept where id in (1, 3, 4)"), 3, "after the failover: rows")
	if _, err := pgx.Connect(t.Context(), database); err == nil {
		t.Error("the killed primary still answers")
	}
}
