package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A statement that the driver cannot encode or the server cannot prepare fails with its own
// error in every query mode. Nothing is applied, and the error is not ErrUnavailable.
func TestBatchThatCannotBeSent(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		s := newStore(t, connect(t, url, mode(m)), postgres.Options{})
		engine := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure}))(t)
		op := semel.Define("op", semel.OperationOptions[int]{OnError: semel.Keep})
		for name, third := range map[string]func(b *pgx.Batch) *pgx.QueuedQuery{
			"argument": func(b *pgx.Batch) *pgx.QueuedQuery {
				return b.Queue(`INSERT INTO effects VALUES ($1)`, struct{ C chan int }{})
			},
			"name": func(b *pgx.Batch) *pgx.QueuedQuery {
				return b.Queue(`INSERT INTO effects VALUES (@name)`, pgx.StrictNamedArgs{})
			},
			"table": func(b *pgx.Batch) *pgx.QueuedQuery { return b.Queue(`INSERT INTO nowhere VALUES (1)`) },
		} {
			for _, calls := range []bool{false, true} {
				b := statements(anEffect, `SELECT 1`)
				if q := third(b); calls {
					q.Exec(func(pgconn.CommandTag) error { return nil })
				}
				c := create(name, store.Succeeded, 1)
				answer, verdict, err := s.AtomicBatch(t.Context(), c, true, b)
				if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrNotStarted) || errors.Is(err, store.ErrInterrupted) || answer.Busy {
					t.Errorf("%v, %s: AtomicBatch = %+v, %v, %v, want the statement's error", m, name, answer, verdict, err)
				}
				if name == "table" && !strings.HasPrefix(err.Error(), "statement 3: ") {
					t.Errorf("%v, %s: AtomicBatch fails with %v, want its statement, 3", m, name, err)
				}
				mustBeFree(t, s, c)
				_, _, err = semel.DoBatch(t.Context(), engine, op.Call(semel.Shared(), m.String()+name, 1), func(context.Context) (int, *pgx.Batch, error) { return 1, b, nil })
				if err == nil || errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("%v, %s: DoBatch fails with %v, want the statement's error", m, name, err)
				}
			}
		}
	}
}

// Batches that wait for a locked row leave a connection for other calls.
func TestBatchesLeaveAConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	other := connect(t, url)
	mustExec(t, other, `INSERT INTO effects VALUES ('row')`)
	tx := check.Must(other.Begin(t.Context()))(t)
	defer tx.Rollback(context.Background()) //nolint:errcheck // it may be over
	mustExec(t, tx, `UPDATE effects SET key = key`)
	const conns, batches = 3, 6
	s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.MaxConns = conns }), postgres.Options{})
	done := make(chan store.Verdict, batches)
	for i := range batches {
		go func() {
			_, verdict, _ := s.AtomicBatch(t.Context(), create(string(rune('a'+i)), store.Succeeded, 1), true, statements(`UPDATE effects SET key = key`))
			done <- verdict
		}()
	}
	for one[int](t, other, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) < conns-1 {
		continue
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		c := create("beside "+string(rune('a'+i)), store.InProgress, 1)
		if answers, err := s.Swap(ctx, []store.Change{c}); err != nil || !answers[0].Applied(c) {
			t.Fatalf("Swap beside batches that wait = %+v, %v, want it applied", answers, err)
		}
	}
	check.Require(t, tx.Rollback(t.Context()))
	for range batches {
		check.Equal(t, <-done, store.Committed, "AtomicBatch that waited")
	}
}
