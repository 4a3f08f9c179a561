package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
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

// A caller cancels a COMMIT that waits for a missing standby. The primary has committed it, and
// the current record shows this.
func TestCommitThatNoStandbyConfirms(t *testing.T) {
	t.Parallel()
	pool := connect(t, migrated(t, realtest.OwnPostgres(t, "synchronous_commit=on")))
	s := newStore(t, pool, postgres.Options{})
	mustForce(t, s, create("first", store.Pending, 1)) // finds the tables
	mustExec(t, pool, `ALTER SYSTEM SET synchronous_standby_names = 'absent'`)
	mustExec(t, pool, `SELECT pg_reload_conf()`)
	s.SetCommitBound(time.Second)
	key, last, verdict := "", store.Change{}, store.Committed
	for i := 0; verdict == store.Committed; i++ { // until the server has read its settings
		key = fmt.Sprint(i)
		last = create(key, store.Succeeded, 1)
		var err error
		if verdict, err = finish(t, s, key, &last); (verdict == store.Committed) != (err == nil) || verdict == store.NotCommitted {
			t.Fatalf("Atomic = %v, %v, want Unknown", verdict, err)
		}
	}
	proof := create(key, store.Pending, 2)
	if got := settled(t, s, proof); got != last.To.Token {
		t.Errorf("the current record is %+v, want what was committed on the primary", got)
	}
	check.Equal(t, effects(t, pool, key), 1, "effects")
}
