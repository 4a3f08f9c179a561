package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Bulk statements of two processes lock records that both of them change. No caller
// fails, and of each record one of the two changes is applied.
func TestBatchesThatCrossAreAnswered(t *testing.T) {
	t.Parallel()
	url := database(t)
	var stores [2]*postgres.Store
	for i := range stores {
		stores[i] = newStore(t, connect(t, url), postgres.Options{MaxSessions: 1})
		check.Require(t, stores[i].OpenSessions(t.Context()))
	}
	direct := connect(t, url)
	for round := range 4 {
		cross(t, direct, stores, round)
	}
}

// cross lets two stores claim the same keys while another transaction holds one of
// them, and lets both continue when they hold some.
func cross(t *testing.T, direct *pgxpool.Pool, stores [2]*postgres.Store, round int) {
	t.Helper()
	holder := check.Must(direct.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(t.Context()) }()
	var changes [2][]store.Change
	for n := range stores {
		for i := n; i < 20; i++ {
			c := create(fmt.Sprint(round, " ", i), store.InProgress, uint64(100+n))
			c.To.ID, c.To.Operation = store.ID{byte(round), byte(i)}, []string{"even", "odd"}[i%2]
			changes[n] = append(changes[n], c)
		}
	}
	check.Must(stores[0].SwapTx(t.Context(), holder, changes[0][18:19]))(t)
	var answers [2][]store.SwapResult
	var both sync.WaitGroup
	for n, s := range stores {
		both.Go(func() {
			var err error
			if answers[n], err = s.Swap(t.Context(), changes[n]); err != nil {
				t.Errorf("store %d: Swap = %v", n, err)
			}
		})
		waiting(t, direct, n+1)
	}
	check.Require(t, holder.Rollback(t.Context()))
	both.Wait()
	for i := 1; i < 20 && !t.Failed(); i++ {
		first, second := changes[0][i], changes[1][i-1]
		switch {
		case answers[0][i].Busy || answers[1][i-1].Busy:
			mustApplyOne(t, stores[0], first, second)
		case answers[0][i].Applied(first) == answers[1][i-1].Applied(second):
			t.Errorf("record %d: %+v and %+v, want one of them applied", i, answers[0][i], answers[1][i-1])
		}
	}
}

// waiting returns once so many sessions wait for a lock, or did.
func waiting(t *testing.T, direct *pgxpool.Pool, most int) {
	t.Helper()
	const waits = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for range 50 {
		if one[int](t, direct, waits) >= most {
			return
		}
	}
}

// mustApplyOne retries Busy changes, as callers do.
func mustApplyOne(t *testing.T, s *postgres.Store, first, second store.Change) {
	t.Helper()
	answers, err := s.Swap(t.Context(), []store.Change{first})
	for err == nil && answers[0].Busy {
		answers, err = s.Swap(t.Context(), []store.Change{first})
	}
	if token := current(t, s, first); err != nil || token != first.To.Token && token != second.To.Token {
		t.Errorf("the repeated Swap = %+v, %v, and the current record is %v", answers, err, token)
	}
}
