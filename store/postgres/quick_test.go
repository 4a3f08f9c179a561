package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Prepared statements may be dropped before a connection is used again. Transactions
// that fail for this have no effect, and later ones are committed.
func TestPreparedAnew(t *testing.T) {
	t.Parallel()
	url := database(t)
	others, pool := connect(t, url), connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	for n, failures := 0, 0; n < 6; n++ {
		key := fmt.Sprint(n, " ", failures)
		last := create(key, store.Succeeded, 1)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ('`+key+`')`) // not prepared
			return &last, err
		})
		if err != nil && verdict == store.NotCommitted && n > 2 && failures < 10 && effects(t, others, key) == 0 {
			failures++
			n--
			continue
		}
		if verdict != store.Committed || err != nil {
			t.Fatalf("transaction %d: Atomic = %v, %v, want it committed", n, verdict, err)
		}
		check.Equal(t, effects(t, others, key), 1, "transaction %d has left: effects", n)
		if failures = 0; n >= 2 {
			mustExec(t, pool, `DEALLOCATE ALL`)
		}
	}
	if n := pool.Stat().NewConnsCount(); n != 1 {
		t.Fatalf("there were %d connections, want all of it on one", n)
	}
}

// For handlers, later transactions of a connection behave like the first one, with savepoints
// of their own.
func TestQuickTransactionsAreLikeOthers(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	for n, rolls := range []bool{false, false, true, false} {
		key := strconv.Itoa(n)
		last := create(key, store.Succeeded, 1)
		_, err := s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			inner, err := tx.Begin(ctx) // of a driver's transaction that served others before
			if err != nil {
				return nil, err
			}
			if err := effect(ctx, inner, key); err != nil {
				return nil, err
			}
			if rolls {
				return &last, inner.Rollback(ctx)
			}
			return &last, inner.Commit(ctx)
		})
		check.Require(t, err)
		want := 1
		if rolls {
			want = 0
		}
		check.Equal(t, effects(t, pool, key), want, "transaction %d has left: effects", n)
		mustForce(t, s, last)
	}
}

// A function that drops prepared statements breaks the end of its transaction, and
// the driver's state of the connection. The outcome is known all the same, and
// later calls succeed.
func TestPreparedIsDroppedByTheFunction(t *testing.T) {
	t.Parallel()
	url := database(t)
	others, pool := connect(t, url), connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	committed := 0
	for n := range 24 {
		key, drops := strconv.Itoa(n), n%8 < 3
		last := create(key, store.Succeeded, 1)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			if err := effect(ctx, tx, key); err != nil {
				return nil, err
			}
			if drops {
				mustExec(t, tx, `DEALLOCATE ALL`)
			}
			return &last, nil
		})
		made := effects(t, others, key)
		if want := map[store.Verdict]int{store.Committed: 1, store.NotCommitted: 0, store.Unknown: -1}[verdict]; made != want || (err == nil) != (made == 1) {
			t.Errorf("transaction %d, which drops: %v: Atomic = %v, %v with %d effects", n, drops, verdict, err, made)
		}
		if n%8 > 5 && verdict == store.Committed {
			committed++
		}
	}
	if committed < 6 {
		t.Errorf("%d of 6 transactions committed, though nothing was dropped for a while", committed)
	}
}
