package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Workers do not make each other fail, and never share a record, at every default
// isolation level.
func TestDequeueAtEveryDefaultLevel(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, level := range append(levels(), pgx.ReadCommitted) {
		s := newStore(t, connect(t, url, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = string(level)
		}), postgres.Options{})
		waiting := batch(string(level)+" ", 200)
		for i := range waiting {
			waiting[i].To.State, waiting[i].To.Operation = store.Pending, string(level)
		}
		mustAll(t, newStore(t, connect(t, url), postgres.Options{}), waiting)
		var workers sync.WaitGroup
		var all sync.Map
		for n := range 8 {
			workers.Go(func() {
				for call := 1; ; call++ {
					d := store.Dequeue{Operation: string(level), Limit: 3, Owner: uint64(1000*n + call), Lease: time.Minute}
					got, err := s.Dequeue(t.Context(), d)
					check.NoError(t, err, "Dequeue at %s", level)
					for _, r := range got {
						if _, twice := all.LoadOrStore(r.ID, n); twice {
							t.Errorf("at %s a record is given twice", level)
						}
					}
					if len(got) == 0 {
						return
					}
				}
			})
		}
		workers.Wait()
		given := 0
		all.Range(func(any, any) bool { given++; return true })
		if given != len(waiting) {
			t.Errorf("at %s %d of %d records are given", level, given, len(waiting))
		}
	}
}

// TestDequeueWaitsForALockOfTheTable: a Dequeue that meets a lock of the table is repeated, and fails if
// the lock stays.
func TestDequeueWaitsForALockOfTheTable(t *testing.T) {
	t.Parallel()
	for released, want := range map[int]int{2: 2, 100: 3} { // the try before which the lock ends, and how many there are
		url := database(t)
		var lock pgx.Tx
		tried := 0
		pool := connect(t, url, traced(tracer{batch: func() {
			if lock == nil {
				return
			}
			if tried++; tried == released {
				check.NoError(t, lock.Rollback(t.Context()))
			}
		}}), mode(pgx.QueryExecModeExec)) // to prepare a statement waits for the lock, too
		s := newStore(t, pool, postgres.Options{MaxSessions: -1})
		waiting := create("task", store.Pending, 0)
		mustForce(t, s, waiting)
		lock = check.Must(connect(t, url).Begin(t.Context()))(t)
		mustExec(t, lock, `LOCK TABLE semel_records IN SHARE MODE`)
		records, err := s.Dequeue(t.Context(), store.Dequeue{Operation: waiting.To.Operation, Limit: 1, Owner: 7, Lease: time.Minute})
		if tried != want || (err == nil) != (tried == released) || len(records) != 1 && err == nil {
			t.Errorf("after %d tries Dequeue = %v, %v; want %d tries, an error if the lock stays, and the record if it ends", tried, records, err, want)
		}
		_ = lock.Rollback(t.Context()) // it may have ended
	}
}

// TestCallsDoNotWriteTheIndexOfDequeued: only records of the queue are in it, so that the
// claim of a call has one index less to write.
func TestCallsDoNotWriteTheIndexOfDequeued(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	pages := func() int { return one[int](t, pool, `SELECT pg_relation_size('semel_dequeued') / 8192`) }
	for i := range 20 {
		mustForce(t, s, create(fmt.Sprint("call ", i), store.InProgress, 1))
	}
	check.Equal(t, pages(), 1, "pages of the index after calls; an index without entries has one")
	waiting := create("task", store.Pending, 0)
	mustForce(t, s, waiting)
	d := store.Dequeue{Operation: waiting.To.Operation, Limit: 1, Owner: 7, Lease: time.Minute}
	check.Equal(t, len(check.Must(s.Dequeue(t.Context(), d))(t)), 1, "records of a Dequeue")
	check.Equal(t, pages(), 2, "pages of the index after a Dequeue of a record without an input")
}

// Dequeue reads the records that it claims and no others: no record that is due
// later, none of another operation, for few and many due records, and for any
// statistics.
func TestDequeueReadsWhatItTakes(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t), mode(pgx.QueryExecModeExec))
	mustExec(t, pool, `ALTER TABLE semel_records SET (autovacuum_enabled = off)`)
	s := newStore(t, pool, postgres.Options{})
	for _, queue := range []struct {
		operation string
		n         int
		priority  int
		due       string
	}{
		{"few", 20_000, store.MaxPriority, "1 hour"},
		{"few", 30, 0, "-1 minute"},
		{"few", 100, store.MinPriority, "-2 hours"},
		{"many", 30_000, store.MaxPriority, "1 hour"},
		{"many", 30_000, 0, "-1 hour"},
		{"other", 20_000, store.MaxPriority, "-3 hours"},
	} {
		mustExec(t, pool, `INSERT INTO semel_records
(id, state, attempt, owner, due, created, changed, tainted, operation, scope, key, priority)
SELECT gen_random_uuid(), 1, 0, 1, clock_timestamp() + $4::text::interval, clock_timestamp(), clock_timestamp(), false,
convert_to($1::text, 'UTF8'), 'scope', convert_to(i::text, 'UTF8'), $2::smallint FROM generate_series(1, $3::int) i`,
			queue.operation, queue.priority, queue.n, queue.due)
	}
	for _, analyzed := range []bool{false, true} {
		for _, operation := range []string{"few", "many"} {
			mustReadLittle(t, pool, s, operation, 100)
		}
		if !analyzed {
			mustExec(t, pool, `ANALYZE semel_records`)
		}
	}
	checkPlans(t, pool, s)
}

// mustReadLittle asks for n records, and requires that the queue's index was read
// for n of them.
func mustReadLittle(t *testing.T, pool *pgxpool.Pool, s *postgres.Store, operation string, n int) {
	t.Helper()
	for _, q := range postgres.Queries(s) {
		if q.Name != "dequeue" {
			continue
		}
		q.Args[0], q.Args[1] = []byte(operation), int64(n)
		plan := within(t, pool, q.Before, func(ctx context.Context, tx pgx.Tx) (pgx.Rows, error) {
			args := append([]any{pgx.QueryExecModeExec}, q.Args...)
			return tx.Query(ctx, `EXPLAIN (ANALYZE, BUFFERS, TIMING off) `+q.Text, args...)
		})
		taken := fmt.Sprintf(`Update on semel_records .*actual rows=%d(\.00)? `, n) // PostgreSQL 18 prints rows with decimals
		// 5 pages for each level, and 2 for each record: its row, to see and to lock.
		var pages int
		found := regexp.MustCompile(`Limit .*actual rows=[\d.]+ loops=1\)\n *Buffers: shared hit=(\d+)`).FindStringSubmatch(plan)
		if len(found) == 2 {
			_, _ = fmt.Sscan(found[1], &pages)
		}
		if !regexp.MustCompile(taken).MatchString(plan) || strings.Contains(plan, "Removed") || pages == 0 || pages > 5*9+2*n {
			t.Errorf("%d of %q are found by reading %d pages:\n%s", n, operation, pages, plan)
		}
	}
}
