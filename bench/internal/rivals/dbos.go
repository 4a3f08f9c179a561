package rivals

import (
	"context"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/bench/internal/postgres"
)

const (
	dbosRow = "DBOS, 64 callers: a workflow by its id, without steps, against Do on PostgreSQL"

	dbosDiffers = "DBOS 0.20.0: the workflow's id is scope and key, its result is the same 256 bytes, its caller waits for it. It runs again after a crash, by itself; " +
		"Do with the default policy does not run again. DBOS keeps the input and counts of tries, and would go on after the last step; Do keeps a fingerprint of the input and fences"
)

func againstDBOS(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	arena, err := postgres.NewArena(ctx, l, "rivals_workflows")
	if err != nil {
		return nil, err
	}
	ours, err := arena.Do()
	if err != nil {
		return nil, err
	}
	sizes := []int{16, 32, callers}
	if l.Quick {
		sizes = []int{32}
	}
	var rivals []contest.Side
	for _, n := range sizes {
		side, err := dbosSide(ctx, l, n)
		if err != nil {
			return nil, err
		}
		rivals = append(rivals, side)
	}
	c := arena.Contest("workflows", callers, append(rivals, ours)...)
	if !l.Quick {
		c.Rounds = 5
	}
	o, err := c.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	best := rivals[o.Fastest(rivals)].Name
	f := o.Compared(dbosRow, ours.Name, best, contest.Throughput)
	f.Detail += fmt.Sprintf("; the fastest of %v connections; %s", sizes, dbosDiffers)
	return arena.Say([]goal.Finding{f}), nil
}

// dbosSide runs workflows in their own schema, with n connections.
func dbosSide(ctx context.Context, l *lab.Lab, conns int) (contest.Side, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return contest.Side{}, err
	}
	pool, err := server.Pool(ctx, l, "rivals_workflows", conns)
	if err != nil {
		return contest.Side{}, err
	}
	d, err := dbos.NewDBOSContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "bench", SystemDBPool: pool, Logger: silent(), DatabaseSchema: fmt.Sprintf("dbos_%d", conns),
	})
	if err != nil {
		return contest.Side{}, fmt.Errorf("make DBOS: %w", err)
	}
	dbos.RegisterWorkflow(d, pay)
	if err := dbos.Launch(d); err != nil {
		return contest.Side{}, fmt.Errorf("start DBOS: %w", err)
	}
	l.Closing(func() error { dbos.Shutdown(d, 5*time.Second); return nil })
	do := func(_ context.Context, c *contest.Caller) error {
		id := payment.Scope(c.N) + ":" + c.Key()
		handle, err := dbos.RunWorkflow(d, pay, payment.Request{Amount: 4711, Currency: "EUR"}, dbos.WithWorkflowID(id))
		if err != nil {
			return err
		}
		_, err = handle.GetResult()
		return err
	}
	return contest.Side{Name: fmt.Sprintf("DBOS with %d", conns), Do: do}, nil
}

// pay is a workflow without steps.
func pay(dbos.DBOSContext, payment.Request) (string, error) { return string(payment.Result()), nil }
