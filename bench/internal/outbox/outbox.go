// Package outbox measures how fast the events of an outbox on PostgreSQL are published.
package outbox

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

const (
	oneLane   = "outbox: events that a relay publishes within the process, of one aggregate"
	manyLanes = "outbox: events that a relay publishes within the process, of 1,000 aggregates"
	forwarded = "outbox: messages that Watermill's forwarder publishes from its PostgreSQL outbox"
)

// aggregates is the number of aggregates in all lanes.
const aggregates = 1000

// body is the payload of every event.
var body = make([]byte, 200) //nolint:gochecknoglobals // never changed

// Experiments returns the experiment with relays.
func Experiments() []lab.Experiment {
	return []lab.Experiment{{
		Name: "outbox",
		Rows: []goal.Row{goal.Shown(oneLane, "/s"), goal.Shown(manyLanes, "/s"), goal.Shown(forwarded, "/s")},
		Run:  measure,
	}}
}

// side publishes events that are in a table.
type side interface {
	// fill empties the table and appends n events.
	fill(ctx context.Context, n int) error
	// publish calls published for each event, and returns after done was closed and the
	// events are removed or marked.
	publish(ctx context.Context, published func(), done <-chan struct{}) error
}

// measure fills a table, and then measures how long it takes to publish all of it.
func measure(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	server, err := l.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := server.Pool(ctx, l, "outbox", 80)
	if err != nil {
		return nil, err
	}
	r, err := newRelay(ctx, l, pool)
	if err != nil {
		return nil, err
	}
	f, err := newForwarder(pool)
	if err != nil {
		return nil, err
	}
	sides := map[string]side{oneLane: &relaySide{r, 1}, manyLanes: &relaySide{r, aggregates}, forwarded: f}
	n := 20_000
	if l.Quick {
		n = 5000
	}
	race := contest.Race{Name: "outbox", Server: server.Usage, Before: func(ctx context.Context, name string) error {
		if err := sides[name].fill(ctx, n); err != nil {
			return fmt.Errorf("fill the outbox: %w", err)
		}
		if _, err := pool.Exec(ctx, "vacuum analyze"); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
		if _, err := pool.Exec(ctx, "checkpoint"); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		return nil
	}}
	for _, name := range []string{oneLane, manyLanes, forwarded} {
		race.Runners = append(race.Runners, contest.Runner{Name: name, Run: func(ctx context.Context) (int, error) {
			var left atomic.Int64
			left.Store(int64(n))
			done := make(chan struct{})
			return n, sides[name].publish(ctx, func() {
				if left.Add(-1) == 0 {
					close(done)
				}
			}, done)
		}})
	}
	o, err := race.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	var all []goal.Finding
	for _, name := range []string{oneLane, manyLanes, forwarded} {
		all = append(all, goal.Finding{Row: name, Value: o.Of(name, contest.Throughput), Detail: o.Describe(name)})
	}
	return all, nil
}

// wait waits for done, or the end of ctx.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
