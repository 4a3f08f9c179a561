package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// warmed is a store whose transactions all go past the driver's batches, on a pool in
// which only one of them runs at a time.
func warmed(t *testing.T, o postgres.Options) (s *postgres.Store, others *pgxpool.Pool) {
	t.Helper()
	s, others = inTurns(t, o)
	for range 2 {
		last := create("warm", store.Succeeded, 1)
		if verdict, err := finish(t, s, "warm", &last); verdict != store.Committed {
			t.Fatalf("Atomic = %v, %v, want it committed", verdict, err)
		}
		mustExec(t, others, `TRUNCATE semel_records, effects`)
	}
	return s, others
}

// A connection that has missed its bound is used no more, and the server is asked to give
// up what it does there.
func TestQuickEndThatHangs(t *testing.T) {
	t.Parallel()
	bound := func(s *postgres.Store) { s.SetCommitBound(time.Second) }
	ends := map[string]func(s *postgres.Store, last store.Change) (store.Verdict, error){
		"Atomic": func(s *postgres.Store, last store.Change) (store.Verdict, error) {
			return s.Atomic(t.Context(), last.To.ID, true, func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				bound(s)
				return &last, effect(ctx, tx, "key")
			})
		},
		"AtomicBatch": func(s *postgres.Store, last store.Change) (store.Verdict, error) {
			bound(s)
			_, verdict, err := s.AtomicBatch(t.Context(), last, true, statements(anEffect))
			return verdict, err
		},
	}
	for name, end := range ends {
		s, others := warmed(t, postgres.Options{StatementTimeout: -1})
		trigger(t, others, `PERFORM pg_sleep(600)`)
		last, proof := create("key", store.Succeeded, 1), create("key", store.Pending, 2)
		verdict, err := end(s, last)
		check.ResultIs(verdict, err)(t, store.Unknown, context.DeadlineExceeded, "%s (want Unknown, and that the bound has passed)", name)
		s.SetCommitBound(10 * time.Second)
		if got := settled(t, s, proof); got != proof.To.Token {
			t.Errorf("%s: the current record is %+v, want the certificate", name, got)
		}
		check.Equal(t, effects(t, others, "key"), 0, "%s: effects", name)
		before := s.Pool().Stat().NewConnsCount()
		mustBeFree(t, s, create("other", store.Succeeded, 1))
		if after := s.Pool().Stat().NewConnsCount(); before == 1 && after == 1 {
			t.Errorf("%s: the connection is used again", name)
		}
	}
}

// A caller that gives up while the server does not reply to its begin returns.
func TestQuickBeginIsGivenUp(t *testing.T) {
	t.Parallel()
	s, others := warmed(t, postgres.Options{})
	tx, err := others.Begin(t.Context())
	check.Require(t, err)
	mustExec(t, tx, `LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE`)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{})
	go func() {
		defer close(told)
		waitFor(t, others, "relation")
		cancel()
	}()
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(ctx, last.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
		t.Error("it is run")
		return nil, errHandler
	})
	<-told
	check.ResultIs(verdict, err)(t, store.NotCommitted, context.Canceled, "Atomic (want it canceled)")
	check.Require(t, tx.Rollback(t.Context()))
	mustBeFree(t, s, last)
	if verdict, err := finish(t, s, "key", &last); verdict != store.Committed {
		t.Errorf("Atomic = %v, %v, want it committed", verdict, err)
	}
}

// A batch whose statements and replies are larger than the buffers of the connection does not
// block.
func TestBatchLargerThanTheWay(t *testing.T) {
	t.Parallel()
	s, others := warmed(t, postgres.Options{})
	for _, key := range []string{"1", "2"} {
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO effects (key) VALUES ($1)`, key)
		for range 400 {
			b.Queue(`SELECT repeat('x', 30000), $1::text`, strings.Repeat("y", 30000))
		}
		_, verdict, err := s.AtomicBatch(t.Context(), create(key, store.Succeeded, 1), true, b)
		if verdict != store.Committed || effects(t, others, key) != 1 {
			t.Fatalf("AtomicBatch = %v, %v with %d effects, want one", verdict, err, effects(t, others, key))
		}
	}
}

// The store and the driver write a record in the same form.
func TestRecordsOfQuickTransactions(t *testing.T) {
	t.Parallel()
	full := create("full", store.Succeeded, 7)
	full.To.Expire, full.To.Priority, full.To.Outcome = 400*24*time.Hour+time.Microsecond, -3, []byte("outcome")
	bare := create("bare", store.Failed, 8)
	bare.To.Expire, bare.To.Fingerprint, bare.To.Outcome, bare.To.Scope = 0, nil, nil, ""
	tainted := create("tainted", store.Succeeded, 9)
	tainted.To.Tainted, tainted.To.Input = true, []byte("input")
	for _, last := range []store.Change{full, bare, tainted} {
		cold, fresh := inTurns(t, postgres.Options{})
		quick, others := warmed(t, postgres.Options{})
		batched, more := warmed(t, postgres.Options{})
		for _, s := range []*postgres.Store{cold, quick} {
			if verdict, err := finish(t, s, "key", &last); verdict != store.Committed {
				t.Fatalf("Atomic = %v, %v, want it committed", verdict, err)
			}
		}
		if _, verdict, err := batched.AtomicBatch(t.Context(), last, true, statements(anEffect)); verdict != store.Committed {
			t.Fatalf("AtomicBatch = %v, %v, want it committed", verdict, err)
		}
		const record = `SELECT concat_ws('|', id, state, attempt, owner, due, extract(epoch FROM expires - created)::int, tainted,
operation, scope, key, fingerprint, priority, input, outcome, num_nulls(due, expires, fingerprint, input, outcome)) FROM semel_records`
		want := one[string](t, fresh, record)
		for _, pool := range []*pgxpool.Pool{others, more} {
			if got := one[string](t, pool, record); got != want {
				t.Errorf("the record is\n%s, want\n%s", got, want)
			}
		}
	}
}
