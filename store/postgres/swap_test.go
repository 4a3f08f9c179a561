package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// batch is a batch of creates of n records.
func batch(name string, n int) []store.Change {
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(fmt.Sprint(name, i), store.InProgress, 1)
	}
	return changes
}

// A Swap with many held records makes a bounded number of round trips: it does not wait for
// each of them.
func TestManyHeldRecords(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s, pool := open(t, postgres.Options{}, traced(tracer{batch: func() { sent.Add(1) }}))
	for _, row := range []struct{ held, of, trips int }{{1000, 1000, 140}, {40, 400, 450}} {
		changes := batch(fmt.Sprint("batch ", row.held), row.of)
		holder := check.Must(pool.Begin(t.Context()))(t)
		check.Must(s.SwapTx(t.Context(), holder, changes[:row.held]))(t)
		before := sent.Load()
		for i, answer := range mustSwap(t, s, changes) {
			if answer.Busy != (i < row.held) || !answer.Busy && !answer.Applied(changes[i]) {
				t.Errorf("%d of %d changes are held, and number %d answers %+v", row.held, row.of, i, answer)
			}
		}
		if n := int(sent.Load() - before); n > row.trips {
			t.Errorf("of %d changes %d are held, and %d trips are made, want at most %d", row.of, row.held, n, row.trips)
		}
		check.Require(t, holder.Rollback(t.Context()))
	}
}

// TestLongestWait holds what the comment at busyAfter says.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	if postgres.LongestWait > 500*time.Millisecond {
		t.Errorf("a Swap waits for up to %v, want half a second at most", postgres.LongestWait)
	}
}

func mustSwap(t *testing.T, s *postgres.Store, changes []store.Change) []store.SwapResult {
	t.Helper()
	answers, err := s.Swap(t.Context(), changes)
	check.Require(t, err, "Swap")
	return answers
}

// A record that the database does not take is refused alone, also within a
// transaction, which goes on.
func TestRefusedAlone(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	mustExec(t, pool, `ALTER TABLE semel_records ADD CHECK (key <> 'poison')`)
	for _, n := range []int{1, 4, 5, 40} { // below and above the size from which a batch is sent as arrays
		for _, inTx := range []bool{false, true} {
			mustExec(t, pool, `TRUNCATE semel_records`)
			changes := batch("key", n)
			changes[n/2].To.Key = "poison"
			tx, err := pool.Begin(t.Context())
			check.Require(t, err)
			var answers []store.SwapResult
			if inTx {
				answers, err = s.SwapTx(t.Context(), tx, changes)
			} else {
				answers, err = s.Swap(t.Context(), changes)
			}
			if err = errors.Join(err, tx.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
			for i, answer := range answers {
				if refused := answer.Err != nil; refused != (i == n/2) || !refused && current(t, s, changes[i]) != changes[i].To.Token {
					t.Errorf("of %d changes, in a transaction %v, one is poisoned, and number %d answers %+v", n, inTx, i, answer)
				}
			}
		}
	}
}

// A batch that is too large for one round trip is sent in several.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	changes := batch("large", 40)
	for i := range changes {
		changes[i].To.Outcome = []byte(strings.Repeat("x", 1<<20-i))
	}
	for i, answer := range mustSwap(t, s, changes) {
		if !answer.Applied(changes[i]) {
			t.Errorf("number %d answers %v, %v", i, answer.Token, answer.Err)
		}
	}
	answers, err := s.Get(t.Context(), []store.ID{changes[0].To.ID, changes[39].To.ID})
	if err != nil || len(answers[0].Record.Outcome) != 1<<20 || len(answers[1].Record.Outcome) != 1<<20-39 {
		t.Errorf("Get = %v, want the outcomes whole", err)
	}
}

func TestPortions(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, row := range []struct{ sizes, want []int }{
		{nil, nil},
		{[]int{0}, []int{1}},
		{[]int{16 * mib, 0, 0}, []int{3}},
		{[]int{16 * mib, 1, 0}, []int{1, 2}},
		{[]int{17 * mib, 17 * mib}, []int{1, 1}},
		{[]int{8 * mib, 8 * mib, 8 * mib, 9 * mib}, []int{2, 1, 1}},
	} {
		if got := postgres.Portions(row.sizes); !slices.Equal(got, row.want) {
			t.Errorf("changes of %v bytes go in trips of %v, want %v", row.sizes, got, row.want)
		}
	}
}

// A worker may claim a Pending record as soon as it exists. The caller that created or
// released it learns that its change was applied, also if another change of its batch was
// not, so that a second round trip reads the records.
func TestSwapOfRecordsThatAreClaimedAtOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	direct := newStore(t, connect(t, url), postgres.Options{})
	trips, between := 0, func() {}
	s := newStore(t, connect(t, url, traced(tracer{batch: func() {
		if trips++; trips == 2 {
			between()
		}
	}})), postgres.Options{})
	var changes []store.Change
	for i, c := range batch("claimed", 20) {
		if c.To.State = store.Pending; i%2 == 1 { // released by its leader
			claim := c
			claim.To.State = store.InProgress
			mustForce(t, direct, claim)
			c = move(claim, store.Pending)
		}
		changes = append(changes, c)
	}
	existing := changes[0]
	existing.To.Owner = 77
	mustForce(t, direct, existing)
	changes[1].If.Owner = 78
	current(t, s, existing) // finds the tables
	trips, between = 0, func() {
		for i, c := range changes[2:] {
			claim := move(c, store.InProgress)
			claim.To.Attempt, claim.To.Owner = 2, uint64(i+100)
			mustForce(t, direct, claim)
		}
	}
	answers := mustSwap(t, s, changes)
	check.Equal(t, trips, 2, "round trips")
	for i, a := range answers {
		check.Equal(t, a.Applied(changes[i]), i > 1, "change %d, answered %+v, is applied", i, a.Token)
	}
}

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

// One record of a batch is created by another transaction, which commits while the batch
// waits for it. The batch then answers with that record and applies all others. Neither this
// nor a repeated create, which is normal, leaves an error in the server's log.
func TestBatchMeetsCreate(t *testing.T) {
	t.Parallel()
	for _, partitioned := range []bool{false, true} {
		t.Run(fmt.Sprintf("partitioned=%v", partitioned), func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int32
			s, pool := open(t, postgres.Options{MaxSessions: 1}, refusals(&refused))
			running := create("running", store.InProgress, 5)
			mustForce(t, s, running)
			if partitioned {
				divided(t, pool, postgres.PartitionOptions{})
			}
			check.Require(t, s.OpenSessions(t.Context()))
			changes := append(batch("claim", 12), move(running, store.Succeeded))
			theirs := changes[3]
			theirs.To.Owner = 99
			holder := check.Must(pool.Begin(t.Context()))(t)
			defer func() { _ = holder.Rollback(t.Context()) }()
			check.Must(s.SwapTx(t.Context(), holder, []store.Change{theirs}))(t)
			var answers []store.SwapResult
			var failed error
			var asked sync.WaitGroup
			asked.Go(func() { answers, failed = s.Swap(t.Context(), changes) })
			mayBeLocked(t, pool)
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
			want := tokensOf(changes)
			want[3] = theirs.To.Token
			mustBeCurrent(t, s.Swap, changes, want)
			check.Equal(t, refused.Load(), 0, "errors of a unique key that the server reported")
		})
	}
}

// mayBeLocked returns once a session waits for a lock, or has waited for so long that it is
// over.
func mayBeLocked(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const waits = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for range 50 {
		if one[int](t, pool, waits) > 0 {
			return
		}
	}
}
