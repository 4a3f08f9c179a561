// Package cloud measures Semel on a PostgreSQL server with the network and disk
// latency that is usual for rented machines.
package cloud

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/postgres"
	"github.com/semelgo/semel/internal/realtest"
)

// The latency that is added.
const (
	trip = 500 * time.Microsecond // to each round trip
	disk = time.Millisecond       // to each fsync
)

// Experiments returns the experiments on a PostgreSQL server with added latency.
func Experiments() []lab.Experiment {
	many := goal.AtLeast(name(256), "x", 3, 3.5)
	some := goal.AtLeast(name(64), "x", 1.2, 1.6)
	return []lab.Experiment{{
		Name: "cloud", Rows: []goal.Row{many, some},
		Run: func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) { return run(ctx, l) },
	}}
}

func name(callers int) string {
	return fmt.Sprintf("Postgres with 1 ms more for an fsync and 0.5 ms for a round trip, throughput of Do at %d callers, against two plain statements", callers)
}

func run(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	shim, err := slowDisk(ctx, l.Dir(), disk)
	if err != nil {
		return nil, err
	}
	server, err := l.StartPostgres(ctx, realtest.DurableOptions{Env: []string{"LD_PRELOAD=" + shim}})
	if err != nil {
		return nil, err
	}
	line := newLine(trip)
	l.Closing(func() error { line.close(); return nil })
	server.Dial = line.dial
	asked, written, err := probe(ctx, l, server)
	if err != nil {
		return nil, err
	}
	l.Logf("a round trip takes %d µs, a commit %d µs", asked.Microseconds(), written.Microseconds())
	var found []goal.Finding
	for _, callers := range []int{256, 64} {
		arena, err := postgres.ArenaOn(ctx, l, server, fmt.Sprintf("cloud_%d", callers))
		if err != nil {
			return nil, err
		}
		naive, err := arena.Naive(ctx, callers)
		if err != nil {
			return nil, err
		}
		do, err := arena.Do()
		if err != nil {
			return nil, err
		}
		o, err := arena.Contest(fmt.Sprintf("cloud, %d callers", callers), callers, naive, do).Run(ctx, l)
		if err != nil {
			return nil, err
		}
		f := o.Compared(name(callers), do.Name, naive.Name, contest.Throughput)
		f.Detail += fmt.Sprintf("; a round trip takes %d µs, and a small commit %d µs; replies wait in the client's connection, and the server's fsync and fdatasync in a library loaded before libc",
			asked.Microseconds(), written.Microseconds())
		found = append(found, arena.Say([]goal.Finding{f})...)
	}
	return found, nil
}

// probe measures a round trip and a commit: the medians.
func probe(ctx context.Context, l *lab.Lab, server *lab.Server) (asked, written time.Duration, err error) {
	pool, err := server.Pool(ctx, l, "cloud_probe", 1)
	if err != nil {
		return 0, 0, err
	}
	if _, err := pool.Exec(ctx, "create table probe (n bigint)"); err != nil {
		return 0, 0, fmt.Errorf("create a table: %w", err)
	}
	took := func(sql string) (time.Duration, error) {
		all := make([]time.Duration, 51)
		for i := range all {
			began := time.Now()
			if _, err := pool.Exec(ctx, sql); err != nil {
				return 0, fmt.Errorf("%s: %w", sql, err)
			}
			all[i] = time.Since(began)
		}
		return middle(all), nil
	}
	if asked, err = took("select 1"); err != nil {
		return 0, 0, err
	}
	written, err = took("insert into probe values (1)")
	return asked, written, err
}
