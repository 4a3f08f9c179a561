package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// reading opens a transaction that has the table in use, as a dump of the database
// does for hours.
func reading(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx := check.Must(pool.Begin(t.Context()))(t)
	mustExec(t, tx, `SELECT FROM semel_records WHERE id = '`+at(0, "k", store.Pending, 1).To.ID.String()+`'`)
	return tx
}

// unlocked waits until the server has ended the work of a lost connection.
func unlocked(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	until(t, pool, `SELECT (count(*) = 0)::int FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

const detaching = `SELECT count(*) FROM pg_inherits WHERE inhdetachpending`

// dropUntil starts a Drop and waits until a query counts something. It returns where the error
// of the Drop will be.
func dropUntil(ctx context.Context, t *testing.T, pool *pgxpool.Pool, p *postgres.Partitions, counts string) <-chan error {
	t.Helper()
	dropped := make(chan error, 1)
	go func() {
		_, err := p.Drop(ctx)
		dropped <- err
	}()
	realtest.Poll(t, counts, func() bool {
		select {
		case err := <-dropped:
			t.Fatalf("Drop = %v, before anything is found by %s", err, counts)
		default:
		}
		return one[int](t, pool, counts) > 0
	})
	return dropped
}

// interruptDetach interrupts a Drop that detaches a partition while a transaction uses the
// table, and returns that transaction.
func interruptDetach(t *testing.T, pool *pgxpool.Pool, p *postgres.Partitions) (reader pgx.Tx) {
	t.Helper()
	reader = reading(t, pool)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dropped := dropUntil(ctx, t, pool, p, detaching)
	cancel()
	check.Fails(t, <-dropped, "Drop whose context ended")
	unlocked(t, pool)
	return reader
}

// An interrupted DETACH is finished.
func TestDropFinalizes(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	check.Require(t, interruptDetach(t, pool, p).Rollback(t.Context()))
	check.NoError(t, p.Once(t.Context()), "Run after an interrupted DETACH")
	if n := one[int](t, pool, detaching); n != 0 || holding(t, p, 0).Sealed {
		t.Error("something is still being detached")
	}
	wantNoneOld(t, pool, p)
}

// A drop waits as long as a transaction uses the table. The making of future
// partitions does not wait for it, because new keys would be refused.
func TestEnsureDoesNotWaitForADrop(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	p := divided(t, pool, postgres.PartitionOptions{})
	reader := reading(t, pool)
	dropped := dropUntil(t.Context(), t, pool, p, detaching)
	other := partitions(t, connect(t, url), postgres.PartitionOptions{})
	other.SetAhead(5 * day)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if made, err := other.Ensure(ctx); err != nil || made == 0 {
		t.Errorf("Ensure beside a drop = %d, %v, want some", made, err)
	}
	other.SetTurn(10 * time.Millisecond)
	check.NoError(t, other.Once(t.Context()), "Run beside a drop that waits")
	mustForce(t, newStore(t, pool, postgres.Options{}), at(-7*day, "then", store.InProgress, 1))
	check.Require(t, reader.Rollback(t.Context()))
	check.NoError(t, <-dropped, "Drop")
	wantNoneOld(t, pool, p)
}

// A process that waits for the lock does not block the process that has it. A wait within a
// statement would.
func TestDropFinalizesBesideOthers(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url)
	p := divided(t, pool, postgres.PartitionOptions{})
	reader := interruptDetach(t, pool, p)
	// An older snapshot delays the one that finishes the detach until others wait.
	old := check.Must(pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	mustExec(t, old, `SELECT 1`)
	check.Require(t, reader.Rollback(t.Context()))
	var all sync.WaitGroup
	holder := check.Must(pool.Acquire(t.Context()))(t)
	mustExec(t, holder, `SELECT pg_advisory_lock($1::bigint)`, postgres.DropLock)
	for range 3 {
		all.Go(func() {
			if _, err := partitions(t, connect(t, url), postgres.PartitionOptions{}).Drop(t.Context()); err != nil {
				t.Errorf("Drop, of several = %v", err)
			}
		})
	}
	until(t, pool, `SELECT (count(*) >= 3)::int FROM pg_stat_activity WHERE query LIKE '%advisory_lock%' AND datname = current_database() AND pid <> pg_backend_pid()`)
	mustExec(t, holder, `SELECT pg_advisory_unlock($1::bigint)`, postgres.DropLock)
	holder.Release()
	until(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%FINALIZE' AND wait_event_type = 'Lock' AND datname = current_database()`)
	check.Require(t, old.Rollback(t.Context()))
	all.Wait()
	wantNoneOld(t, pool, p)
}

// Dropped partitions are not made again for old keys, also if no partitions were
// made for so long that the last one was dropped, too.
func TestEnsureAfterAllWereDropped(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	late := expired(at(3*day, "late", store.Succeeded, 1))
	mustForce(t, s, late)
	p.SetAhead(20 * day)
	check.Must(p.Drop(t.Context()))(t)
	check.Must(p.Ensure(t.Context()))(t)
	if answers, err := s.Swap(t.Context(), []store.Change{late}); err != nil || !errors.Is(answers[0].Err, store.ErrNoPartition) {
		t.Errorf("a key whose partition was dropped = %+v, %v, want ErrNoPartition", answers, err)
	}
	mustForce(t, s, at(-20*day, "new", store.Succeeded, 1))
}

// PostgreSQL detaches one partition at a time. An interrupted DETACH is therefore finished
// first, also if an older partition can be dropped by then.
func TestDropFinalizesFirst(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	p := divided(t, pool, postgres.PartitionOptions{})
	s := newStore(t, pool, postgres.Options{})
	oldest := holding(t, p, 5*day)
	running := at(5*day, "running", store.InProgress, 1)
	mustForce(t, s, running)
	older := partitions(t, pool, postgres.PartitionOptions{Keep: 4 * day}) // all that are older go
	if _, err := older.Drop(t.Context()); err == nil {
		t.Fatal("Drop of what holds a leader = nil, want an error")
	}
	check.Require(t, interruptDetach(t, pool, p).Rollback(t.Context()))
	done := expired(move(running, store.Succeeded))
	mustForce(t, s, done)
	if gone, err := p.Drop(t.Context()); err != nil || len(gone) < 2 || !gone[len(gone)-1].To.After(oldest.To) {
		t.Errorf("Drop = %v, %v, want both and all that are younger", names(gone), err)
	}
	wantNoneOld(t, pool, p)
}
