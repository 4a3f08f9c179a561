package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
)

// drain is how long running tasks and imports may take to end when the server
// stops. It is shorter than grace.
const drain = grace / 2

// background delivers changes to the streams of this server. Unless other servers do so, it
// also publishes changes, runs tasks, imports messages, sweeps the records of dead servers,
// and purges records past their retention. It ends with ctx. There is no elected leader.
func (s *app) background(ctx context.Context) {
	var duties sync.WaitGroup
	defer duties.Wait()
	duties.Go(func() { _ = s.live.Run(ctx) }) // its error is that of ctx
	duties.Go(func() { s.wakeUps(ctx) })
	if s.metrics != nil {
		duties.Go(func() {
			if err := s.metrics.Run(ctx); err != nil {
				s.log.LogAttrs(ctx, slog.LevelError, "metrics are not served any more", slog.String("error", err.Error()))
			}
		})
	}
	if s.config.serveOnly {
		return
	}
	duties.Go(func() {
		if err := s.relay.Run(ctx); err != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "changes are not published any more", slog.String("error", err.Error()))
		}
	})
	duties.Go(func() {
		if err := s.worker.Run(ctx); err != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "tasks are not run any more", slog.String("error", err.Error()))
		}
	})
	for _, sweeper := range s.sweepers {
		duties.Go(func() { _ = sweeper.Run(ctx) }) // its error is always nil
	}
	if s.importer != nil {
		duties.Go(func() { s.importer.run(ctx) })
	}
}

// newSweepers returns one sweeper for each engine. The sweeper of keys is slow: a
// retry settles its key at once, and a leader that is only slow should not lose
// its key too early. The sweeper of tasks is faster, because no caller retries a
// task.
func newSweepers(s *app) (both []*admin.Sweeper, err error) {
	for e, every := range map[semel.Runner]time.Duration{
		s.engine: s.config.sweep, s.queue: min(s.config.sweep, s.config.lease),
	} {
		sweeper, err := admin.NewSweeper(e, admin.SweeperOptions{Every: every})
		if err != nil {
			return nil, err
		}
		both = append(both, sweeper)
	}
	return both, nil
}

// grace is how long running requests may take to end when the server stops.
const grace = 10 * time.Second
