package task_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

// sharedTasks is the number of tasks that several workers share in the tests
// below.
const sharedTasks = 200

// failSometimes makes one task in four fail in its first attempt, and one in
// eight panic in its second.
func failSometimes(in input, attempt uint32) error {
	switch {
	case in.N%4 == 0 && attempt == 1:
		return errBoom
	case in.N%8 == 0 && attempt == 2:
		panic("on purpose")
	}
	return nil
}

// TestWorkersShareTheQueueOnPostgres: each task has one effect. Tasks that were
// enqueued in a transaction that was rolled back do not exist.
func TestWorkersShareTheQueueOnPostgres(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	o := atomicOptions()
	o.Retry.Delay = after(10 * time.Millisecond)
	op := semel.Define("op", o)
	var processes []*realProcess[pgx.Tx]
	for range 3 {
		p := newProcess(t, newPostgresStore(t, ledger.Pool(t, url)), task.Options{Slots: 8, Poll: 20 * time.Millisecond}, op)
		check.Require(t, task.HandleTx(p.worker, p.Engine, op, func(ctx context.Context, tx pgx.Tx, in input) (int, error) {
			a, _ := semel.AttemptOf(ctx)
			if err := insertEffect(ctx, tx, fmt.Sprint(in.N), a.Number()); err != nil {
				return 0, err
			}
			return in.N, failSometimes(in, a.Number())
		}, task.HandlerOptions{}), "HandleTx")
		p.start(t)
		processes = append(processes, p)
	}
	pool := ledger.Pool(t, url)
	for i := range sharedTasks {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			added, err := semel.EnqueueTx(t.Context(), processes[0].Engine, tx, op.Call(me, fmt.Sprint(i), input{i}), semel.EnqueueOptions{})
			if err == nil && !added {
				t.Errorf("task %d existed already", i)
			}
			if i%10 == 9 {
				return errBoom // roll the transaction back
			}
			return err
		})
		if i%10 != 9 && err != nil {
			t.Fatalf("enqueue: %v", err)
		}
	}
	processes[0].worker.Wake()
	done := waitAllEnded(t, newPostgresStore(t, pool), "op", sharedTasks-sharedTasks/10)
	wantEachOnce(t, done, selectEffects(t, pool))
}

// TestWorkersShareTheQueueOnSQLite is the same test on SQLite.
func TestWorkersShareTheQueueOnSQLite(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "sqlite")
	db := newSQLite(t)
	s := sqlite.New(db, sqlite.Options{})
	o := atomicOptions()
	o.Retry.Delay = after(10 * time.Millisecond)
	op := semel.Define("op", o)
	var process *realProcess[*sql.Tx]
	for range 2 {
		p := newProcess(t, s, task.Options{Slots: 4, Poll: 20 * time.Millisecond}, op)
		check.Require(t, task.HandleTx(p.worker, p.Engine, op, func(ctx context.Context, tx *sql.Tx, in input) (int, error) {
			a, _ := semel.AttemptOf(ctx)
			_, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (?, ?)`, fmt.Sprint(in.N), a.Number())
			if err != nil {
				return 0, err
			}
			return in.N, failSometimes(in, a.Number())
		}, task.HandlerOptions{}), "HandleTx")
		p.start(t)
		process = p
	}
	for i := range sharedTasks {
		if _, err := semel.Enqueue(t.Context(), process, op.Call(me, fmt.Sprint(i), input{i}), semel.EnqueueOptions{}); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	done := waitAllEnded(t, s, "op", sharedTasks)
	rows, err := db.QueryContext(t.Context(), `SELECT key, attempt FROM effects`)
	check.Require(t, err, "read effects")
	defer rows.Close()
	effects := make(map[string][]uint32)
	for rows.Next() {
		var key string
		var attempt uint32
		check.Require(t, rows.Scan(&key, &attempt), "read effects")
		effects[key] = append(effects[key], attempt)
	}
	check.Require(t, rows.Err(), "read effects")
	wantEachOnce(t, done, effects)
}

// waitAllEnded waits until n tasks have succeeded and returns their records.
func waitAllEnded(t *testing.T, s interface {
	store.Store
	store.Counter
}, operation string, n int64,
) []store.Record {
	t.Helper()
	realtest.Poll(t, "the tasks to end", func() bool {
		counts, err := task.Counts(t.Context(), s, operation)
		check.Require(t, err, "Counts")
		return counts[0].Succeeded+counts[0].Failed+counts[0].InDoubt == n
	})
	records, err := s.Scan(t.Context(), store.Query{State: store.Succeeded, Operation: operation, Limit: int(n)})
	if err != nil || int64(len(records)) != n {
		t.Fatalf("%d tasks succeeded, %v; want all %d", len(records), err, n)
	}
	return records
}

// wantEachOnce fails the test unless each record has exactly one effect, that
// of the attempt that succeeded.
func wantEachOnce(t *testing.T, done []store.Record, effects map[string][]uint32) {
	t.Helper()
	want := make(map[string][]uint32)
	retried := 0
	for _, r := range done {
		want[r.Key] = []uint32{r.Attempt}
		if r.Attempt > 1 {
			retried++
		}
	}
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Errorf("the effects differ from the attempts that succeeded (-want +got):\n%s", diff)
	}
	if retried < sharedTasks/8 {
		t.Errorf("%d tasks were retried, want more: the test proves nothing", retried)
	}
}

// TestLockedRowDoesNotDelayTheBatchOnPostgres: a transaction locks the row of
// one task until the others of the batch have been completed.
func TestLockedRowDoesNotDelayTheBatchOnPostgres(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	op := semel.Define("op", leasedOptions(semel.Hold()))
	p := newProcess(t, newPostgresStore(t, ledger.Pool(t, url)), task.Options{Slots: 20, Poll: 20 * time.Millisecond}, op)
	begun, end := make(chan struct{}), make(chan struct{})
	check.Require(t, task.Handle(p.worker, op, func(_ context.Context, in input) (int, error) {
		sendOrEnd(t, begun, struct{}{})
		block(t, end)
		return in.N, nil
	}, task.HandlerOptions{}), "Handle")
	calls := make([]semel.Call, 20)
	for i := range calls {
		calls[i] = op.Call(me, fmt.Sprint(i), input{i})
		if _, err := semel.Enqueue(t.Context(), p, calls[i], semel.EnqueueOptions{}); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	p.start(t)
	for range calls {
		await(t, begun, "the tasks to begin")
	}
	pool := ledger.Pool(t, url)
	locked := calls[0].ID()
	check.Require(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT id FROM semel_records WHERE id = $1 FOR UPDATE`, locked[:]); err != nil {
			return err
		}
		close(end)
		realtest.Poll(t, "the other tasks to end", func() bool {
			counts, err := task.Counts(t.Context(), newPostgresStore(t, pool), "op")
			return err == nil && counts[0].Succeeded == int64(len(calls)-1) && counts[0].Running == 1
		})
		return nil
	}), "hold the row")
	for _, r := range waitAllEnded(t, newPostgresStore(t, pool), "op", int64(len(calls))) {
		out := adapter.Outcome{Record: r}
		var n int
		if err := out.Decode(&n); err != nil || fmt.Sprint(n) != r.Key {
			t.Errorf("task %s has the result %d, %v", r.Key, n, err)
		}
	}
}
