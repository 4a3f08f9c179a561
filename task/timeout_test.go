package task_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// TestBrokenTransactionsAreRetriedWithALimit: a timeout of the function, a
// timeout of the database, or a lost session does not lead to endless retries.
func TestBrokenTransactionsAreRetriedWithALimit(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		timeout time.Duration
		sql     string
	}{
		"its own timeout":         {100 * time.Millisecond, `SELECT pg_sleep(60)`},
		"a timeout of statements": {0, `SET LOCAL statement_timeout = 50; SELECT pg_sleep(60)`},
		"the end of its session":  {0, `SELECT pg_terminate_backend(pg_backend_pid())`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := atomicOptions()
			o.Retry.MaxErrors, o.Retry.Delay = 2, after(time.Millisecond)
			op := semel.Define("op", o)
			p := newProcess(t, newPostgresStore(t, ledger.Pool(t, newPostgres(t))), task.Options{Poll: 10 * time.Millisecond}, op)
			if err := task.HandleTx(p.worker, p.Engine, op, func(ctx context.Context, tx pgx.Tx, _ input) (string, error) {
				_, err := tx.Exec(ctx, run.sql, pgx.QueryExecModeSimpleProtocol)
				return "", err
			}, task.HandlerOptions{Timeout: run.timeout}); err != nil {
				t.Fatalf("HandleTx: %v", err)
			}
			if _, err := semel.Enqueue(t.Context(), p, op.Call(me, "k", input{}), semel.EnqueueOptions{}); err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
			p.start(t)
			realtest.Poll(t, "the task to become a dead letter", func() bool {
				r, _, err := admin.Get(t.Context(), p, "op", me, "k")
				progress, _ := admin.ProgressOf(r)
				return err == nil && r.State == store.Failed && progress.Errors == 2
			})
		})
	}
}
