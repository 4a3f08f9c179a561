package rivals

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

const (
	riverRow     = "River, 64 callers: unique jobs added one by one, and worked"
	riverManyRow = "River, 64 callers: jobs added by the hundred, and worked, against ours one by one"

	riverDiffers = "River 0.51.1 has the settings of its own benchmark: 2000 workers, fetch cooldown 2 ms, poll 20 ms; its jobs are unique by their arguments. " +
		"Semel: a task.Worker of 2000 slots, tasks unique by key. Both run at least once, commit what is added before they answer, and are counted when the end of a job is stored. " +
		"River's jobs can be looked up by their arguments and it has schedules; Semel fences, renews leases and keeps a result"
)

func againstRiver(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := newTasks(ctx, l, server)
	if err != nil {
		return nil, err
	}
	conns, err := riverConns(ctx, l, server, ours)
	if err != nil {
		return nil, err
	}
	single, err := newRiver(ctx, l, server, "River", 1, conns)
	if err != nil {
		return nil, err
	}
	many, err := newRiver(ctx, l, server, "River by the hundred", 100, conns)
	if err != nil {
		return nil, err
	}
	o, err := jobsOf(l).race(ctx, l, "jobs", ours.checkpoint, ours, single, many)
	if err != nil {
		return nil, err
	}
	found := []goal.Finding{
		o.Compared(riverRow, ours.name(), single.name(), contest.Throughput),
		o.Compared(riverManyRow, ours.name(), many.name(), contest.Throughput),
	}
	for i := range found {
		found[i].Detail += fmt.Sprintf("; %s; River has %d connections, Semel 16", riverDiffers, conns)
	}
	return found, nil
}

// riverConns finds the best number of connections for River.
func riverConns(ctx context.Context, l *lab.Lab, server *lab.Server, ours *tasks) (int, error) {
	sizes := []int{16, 32, 64}
	if l.Quick {
		return 32, nil
	}
	queues := make([]queue, len(sizes))
	for i, n := range sizes {
		q, err := newRiver(ctx, l, server, fmt.Sprintf("River with %d", n), 1, n)
		if err != nil {
			return 0, err
		}
		queues[i] = q
	}
	trial := jobs{n: 6000, rounds: 1}
	o, err := trial.race(ctx, l, "connections of River", ours.checkpoint, queues...)
	if err != nil {
		return 0, err
	}
	return sizes[fastest(o, queues)], nil
}
