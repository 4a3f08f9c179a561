package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
)

// TestContractOnAQuorum runs the suite on a primary with two standbys, of which a commit
// needs one.
func TestContractOnAQuorum(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	t.Attr("engine", "postgres")
	storetest.Run(t, quorumSubjects(t))
}

// quorumSubjects returns subjects with replicas that can be disconnected. Meanwhile the
// store's own bounds are shorter, because each call waits as long as they are.
func quorumSubjects(t *testing.T) func(testing.TB) storetest.Subject[pgx.Tx] {
	t.Helper()
	q := realtest.PostgresQuorum(t)
	pool := connect(t, migrated(t, q.Primary()), watched)
	return func(t testing.TB) storetest.Subject[pgx.Tx] {
		s := newStore(t, pool, postgres.Options{})
		sub := subjectOf(t, pool, s, postgres.Options{})
		sub.Isolate = func() func() {
			s.SetCommitBound(time.Second)
			s.SetStatementBound(time.Second)
			return sync.OnceFunc(q.Isolate())
		}
		return sub
	}
}

// watched lets the pool's connections report cancelled waits.
func watched(c *pgxpool.Config) { postgres.WatchReplication(c.ConnConfig) }
