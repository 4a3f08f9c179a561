package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// refusals counts the errors of a unique key that the server has reported to a pool and its
// sessions, each of which is a line in its log.
func refusals(n *atomic.Int32) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		c.ConnConfig.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
			if err.Code == "23505" {
				n.Add(1)
			}
			return true
		}
	}
}

// A repeated create is normal, so it must not cause an error in the log of the server.
func TestRepeatsRaiseNothing(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	s := newStore(t, connect(t, database(t), refusals(&refused)), postgres.Options{})
	check.Require(t, s.OpenSessions(t.Context()))
	for name, claims := range overtakable() {
		want := tokensOf(claims)
		for i := range claims {
			mustBeCurrent(t, s.Swap, claims, want) // asked again
			claims[i].To.Owner = 77                // another caller's
		}
		if n := refused.Load(); n > 0 {
			t.Errorf("%s: the server has reported %d errors", name, n)
		}
	}
}

// TestBatchMeetsCreate creates one record of a batch in another transaction, which commits
// while the batch waits for it. The batch then finds the other record, creates all others,
// and leaves no error in the server's log.
func TestBatchMeetsCreate(t *testing.T) {
	t.Parallel()
	for _, partitioned := range []bool{false, true} {
		t.Run(fmt.Sprintf("partitioned=%v", partitioned), func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int32
			pool := connect(t, database(t), refusals(&refused))
			s := newStore(t, pool, postgres.Options{MaxSessions: 1})
			if partitioned {
				mustForce(t, s, create("before", store.InProgress, 1))
				divided(t, pool, postgres.PartitionOptions{})
			}
			check.Require(t, s.OpenSessions(t.Context()))
			for name, claims := range overtakable() {
				overtake(t, pool, s, claims, name)
			}
			if n := refused.Load(); n > 0 {
				t.Errorf("the server reported %d errors of a unique key, want none", n)
			}
		})
	}
}

// If a batch violates a unique key other than that of the IDs, it is not retried as a whole:
// each change is retried alone.
func TestBatchesMeetAnotherUniqueKey(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	url := database(t)
	s := newStore(t, connect(t, url, refusals(&refused)), postgres.Options{MaxSessions: 1})
	mustExec(t, connect(t, url), `CREATE UNIQUE INDEX ON semel_records (owner)`)
	check.Require(t, s.OpenSessions(t.Context()))
	for round := range 2 {
		claims := make([]store.Change, 12)
		for i := range claims {
			claims[i] = create(fmt.Sprint(round, i), store.InProgress, uint64(100*round+i+1))
		}
		claims[11].To.Owner = claims[3].To.Owner
		refused.Store(0)
		answers := check.Must(s.Swap(t.Context(), claims))(t)
		lost := 0
		for i, a := range answers {
			if !a.Applied(claims[i]) {
				lost++
			}
		}
		if n := refused.Load(); lost != 1 || n != 2 {
			t.Errorf("round %d: %d changes were not applied, want one, and %d errors, want one of the batch and one of the retry alone", round, lost, n)
		}
	}
}

// overtakable are batches of creates, of each kind that one statement makes.
func overtakable() map[string][]store.Change {
	all := make(map[string][]store.Change)
	for name, state := range map[string]store.State{"claimed": store.InProgress, "waiting": store.Pending, "queued": store.Pending} {
		for i := range 12 {
			c := create(fmt.Sprint(name, i), state, uint64(i+1))
			if name == "queued" {
				c.To.Input = []byte("input")
			}
			all[name] = append(all[name], c)
		}
	}
	return all
}

// overtake lets another caller create the third of the claims, and commit when the
// batch waits for it. It uses records of its own; an end is in the same batch.
func overtake(t *testing.T, direct *pgxpool.Pool, s *postgres.Store, of []store.Change, name string) {
	t.Helper()
	running := create(name+" running", store.InProgress, 5)
	mustForce(t, s, running)
	claims := make([]store.Change, len(of), len(of)+1)
	for i, c := range of {
		c.To.ID = store.NewID("test", name, fmt.Sprint(i))
		claims[i] = c
	}
	theirs := claims[3]
	theirs.To.Owner = 99
	ended := move(running, store.Succeeded)
	ended.To.Outcome = []byte("outcome")
	changes := append(claims, ended)
	holder := check.Must(direct.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(t.Context()) }()
	check.Must(s.SwapTx(t.Context(), holder, []store.Change{theirs}))(t)
	var answers []store.SwapResult
	var failed error
	var asked sync.WaitGroup
	asked.Go(func() { answers, failed = s.Swap(t.Context(), changes) })
	waiting(t, direct, 1)
	check.Require(t, holder.Commit(t.Context()))
	asked.Wait()
	check.Require(t, failed)
	for i, a := range answers {
		switch {
		case i == 3 && a.Busy: // for longer than a batch waits
		case i == 3 && a.Token == theirs.To.Token && a.Record != nil:
		case i != 3 && a.Applied(changes[i]):
		default:
			t.Errorf("change %d answers %+v", i, a)
		}
	}
}
