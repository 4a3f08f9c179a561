//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
)

// longLeaseOp has a very long lease.
var longLeaseOp = semel.Define("unhurried", semel.OperationOptions[job]{
	Policy: semel.Atomic(), Lease: 10 * time.Minute, Retry: patient(),
})

func TestStoppedWorkersLeaveNothingToSweep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	at, s := inPostgres(t)
	const round, stops = 60, 4
	p := newProducer(s, engineOf(t, s), longLeaseOp)
	w := groundTruth{s.tables}
	two := [2]*process{}
	for i := range two {
		two[i] = start(t, worker(at, fmt.Sprint("worker-", i), longLeaseOp))
		two[i].Await(t, "ready")
	}
	const done = `select count(*) from semel_records where state = 4`
	for i := range stops {
		check.Require(t, s.transact(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			return p.enqueue(ctx, tx, "job", i*round, round)
		}))
		w.await(t, int64(i*round+round/4), "tasks that are done", done)
		one := i % len(two)
		endAll(t, two[one:one+1])
		two[one] = start(t, worker(at, fmt.Sprint("worker-", i+len(two)), longLeaseOp))
		two[one].Await(t, "ready")
	}
	w.await(t, stops*round, "tasks that are done", done)
	endAll(t, two[:])
	w.wantLegalTransitions(t)
	w.want(t, stops*round, "effects", `select count(*) from effects`)
	w.want(t, stops*round, "tasks that had an effect", `select count(distinct task) from effects`)
	w.want(t, 0, "attempts that another owner ended",
		`select count(*) from history where from_state = 2 and to_owner <> from_owner`)
	by := w.count(t, `select count(distinct process) from effects`)
	t.Logf("%d workers did the work, one after the other", by)
	if by < stops/2 {
		t.Errorf("vacuous: %d workers have done something, want more", by)
	}
}
