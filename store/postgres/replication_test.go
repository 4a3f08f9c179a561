package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// TestCancelledWaitIsNoSuccess: an operator cancels the commit that waits for a standby.
// The server then confirms it to its client, but no standby has it.
func TestCancelledWaitIsNoSuccess(t *testing.T) {
	t.Parallel()
	q := realtest.PostgresQuorum(t)
	url := migrated(t, q.Primary())
	admin := connect(t, url)
	final := create("final", store.Succeeded, 1)
	failed := errors.New("answered without replicas")
	for _, row := range []struct {
		name string
		own  bool // over the store's own connections
		call func(ctx context.Context, s *postgres.Store) error
	}{
		{"Swap", false, swapCall(create("swap", store.InProgress, 1))},
		{"Swap on a session", true, swapCall(create("session", store.InProgress, 1))},
		{"repeated Swap", false, swapCall(final)},
		{"superseded Swap", false, swapCall(create("final", store.Succeeded, 2))},
		{"Get", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Get(ctx, []store.ID{final.To.ID})
			return err
		}},
		{"Scan", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Scan(ctx, store.Query{State: store.Succeeded})
			return err
		}},
		{"Dequeue", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1, Owner: 7, Lease: time.Hour})
			return err
		}},
		{"repeated Dequeue", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1, Owner: 8, Lease: time.Hour})
			return err
		}},
		{"Dequeue that rereads", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Dequeue(ctx, store.Dequeue{Operation: "test", Limit: 1, Owner: 8, Lease: time.Hour, Reread: true})
			return err
		}},
		{"SwapNoted", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.SwapNoted(ctx, create("noted", store.Failed, 1), store.Note{Actor: "a", Reason: "r"})
			return err
		}},
		{"Atomic", false, func(ctx context.Context, s *postgres.Store) error {
			last := create("atomic", store.Succeeded, 1)
			verdict, err := s.Atomic(ctx, last.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
				return &last, nil
			})
			return errors.Join(err, unlessUnknown(verdict))
		}},
		{"Atomic that reads", false, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Atomic(ctx, final.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
				return nil, failed
			})
			if errors.Is(err, failed) {
				return nil // what run returned was for a record that may be lost
			}
			return err
		}},
		{"AtomicBatch", false, batchCall(create("batch", store.Succeeded, 1), nil)},
		{"AtomicBatch with a callback", false, batchCall(create("callback", store.Succeeded, 1), func(pgx.Rows) error { return nil })},
		{"AtomicBatch with COMMIT", false, func(ctx context.Context, s *postgres.Store) error {
			moved := move(create("moved", store.InProgress, 1), store.Succeeded)
			return batchCall(moved, nil)(ctx, s)
		}},
	} {
		s := newStore(t, connect(t, url, watched), postgres.Options{})
		if row.own {
			check.Require(t, s.OpenSessions(t.Context()))
		}
		mustSurviveFailover(t, s)
		mustExec(t, admin, `TRUNCATE semel_records, semel_notes`)
		claimed := create("claimed", store.InProgress, 8)
		claimed.To.Input = []byte("task") // as each record that was dequeued has
		for _, c := range []store.Change{final, create("moved", store.InProgress, 1), create("pending", store.Pending, 1), claimed} {
			mustForce(t, s, c)
		}
		restore := q.Isolate()
		ended := make(chan error, 1)
		go func() { ended <- row.call(t.Context(), s) }()
		cancelWait(t, admin)
		if err := <-ended; !errors.Is(err, postgres.ErrNotReplicated) {
			t.Errorf("%s = %v, want an error that no standby has it", row.name, err)
		}
		restore()
	}
}

// cancelWait cancels a commit that waits for a standby.
func cancelWait(t *testing.T, admin *pgxpool.Pool) {
	t.Helper()
	const cancel = `SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	realtest.Poll(t, "a commit that waits for a standby", func() bool { return one[bool](t, admin, cancel) })
}

func swapCall(c store.Change) func(ctx context.Context, s *postgres.Store) error {
	return func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Swap(ctx, []store.Change{c})
		return err
	}
}

func batchCall(c store.Change, callback func(pgx.Rows) error) func(ctx context.Context, s *postgres.Store) error {
	return func(ctx context.Context, s *postgres.Store) error {
		b := &pgx.Batch{}
		q := b.Queue(`INSERT INTO effects (key) VALUES ('batch') RETURNING key`)
		if callback != nil {
			q.Query(callback)
		}
		_, verdict, err := s.AtomicBatch(ctx, c, true, b)
		return errors.Join(err, unlessUnknown(verdict))
	}
}

func unlessUnknown(v store.Verdict) error {
	if v != store.Unknown {
		return errors.New("the verdict is " + v.String())
	}
	return nil
}

// mustSurviveFailover requires that the store's records survive a failover.
func mustSurviveFailover(t *testing.T, s *postgres.Store) {
	t.Helper()
	caps, err := s.Capabilities(t.Context())
	if err != nil || caps.Survives != store.Failover || caps.SurvivesBecause != "" {
		t.Fatalf("Capabilities = %v because of %q, %v, want Failover", caps.Survives, caps.SurvivesBecause, err)
	}
}

// TestSurvivesAFailover with synchronous standbys whose disks a commit waits for, and a
// pool that reports cancelled waits. No server needs to be there for that: without one
// nothing is committed.
func TestSurvivesAFailover(t *testing.T) {
	t.Parallel()
	server := durableServer(t, "synchronous_commit=remote_apply")
	url := migrated(t, server)
	pool := connect(t, url, watched)
	s := newStore(t, pool, postgres.Options{})
	wantSurvives(t, pool, store.PowerLoss)
	setting := func(value string) {
		mustExec(t, pool, `ALTER SYSTEM SET synchronous_standby_names = '`+value+`'`)
		mustExec(t, pool, `SELECT pg_reload_conf()`)
		realtest.Poll(t, "the new setting", func() bool { return one[string](t, pool, `SHOW synchronous_standby_names`) == value })
	}
	setting("ANY 1 (*)")
	mustSurviveFailover(t, s)
	mustDequeueNothing(t, s)
	check.Require(t, s.OpenSessions(t.Context()))
	mustDequeueNothing(t, s)
	wantSurvives(t, connect(t, url), store.PowerLoss,
		"the pool does not report cancelled waits for synchronous replication: pass its ConnConfig to postgres.WatchReplication")
	for _, weak := range []string{"local", "remote_write"} {
		wantSurvives(t, connect(t, url, watched, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["synchronous_commit"] = weak }),
			store.PowerLoss, "synchronous_commit is "+weak+" (set by the client: the connection string, PGOPTIONS or RuntimeParams)")
	}
	wantSurvives(t, connect(t, url, watched, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["synchronous_commit"] = "off" }),
		store.NoFailure, "synchronous_commit is off (set by the client: the connection string, PGOPTIONS or RuntimeParams)")
	setting("")
	wantSurvives(t, pool, store.PowerLoss)
}

// mustDequeueNothing requires that calls that find nothing write nothing: they would wait
// for a standby that is not there.
func mustDequeueNothing(t *testing.T, s *postgres.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, reread := range []bool{false, true} {
		d := store.Dequeue{Operation: "test", Limit: 1, Owner: 1, Lease: time.Minute, Reread: reread}
		if got, err := s.Dequeue(ctx, d); err != nil || len(got) > 0 {
			t.Errorf("Dequeue(%+v) without records = %v, %v, want none", d, got, err)
		}
	}
}

// TestWatchReplicationKeepsTheHooks that a program has set before.
func TestWatchReplicationKeepsTheHooks(t *testing.T) {
	t.Parallel()
	var notices, connected int
	pool := connect(t, database(t), func(c *pgxpool.Config) {
		c.MaxConns = 2
		c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { notices++ }
		c.ConnConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error { connected++; return nil }
		postgres.WatchReplication(c.ConnConfig)
	})
	mustExec(t, pool, `DO $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; END $$`)
	if notices != 1 || connected != 1 {
		t.Errorf("%d notices and %d connections are reported, want 1 and 1", notices, connected)
	}
}
