package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/semelgo/semel"
)

// drain is how long tasks and imported messages that run may go on when the
// server stops. It is shorter than grace.
const drain = grace / 2

// background does what nobody asks for, until ctx ends: it runs tasks, imports
// messages, frees what dead servers left, and purges what is past its retention.
// Every server does so; none of it has to be done by a certain one.
func (s *app) background(ctx context.Context) {
	if s.config.serveOnly {
		return
	}
	var duties sync.WaitGroup
	duties.Go(func() {
		if err := s.worker.Run(ctx); err != nil {
			s.log.LogAttrs(ctx, slog.LevelError, "tasks are not run any more", slog.String("error", err.Error()))
		}
	})
	for _, sweeper := range s.sweepers {
		duties.Go(func() { _ = sweeper.Run(ctx) }) // it returns nothing else than nil
	}
	if s.importer != nil {
		duties.Go(func() { s.importer.run(ctx) })
	}
	duties.Wait()
}

// newSweepers returns one for each engine. Keys wait for theirs: whoever asks again
// has them settled at once, and a leader that is merely slow is not to be given up
// before its time. Nobody asks for a task again.
func (s *app) newSweepers() (both []*semel.Sweeper, err error) {
	for e, every := range map[semel.Runner]time.Duration{
		s.engine: s.config.sweep, s.queue: min(s.config.sweep, s.config.lease),
	} {
		sweeper, err := semel.NewSweeper(e, semel.SweeperOptions{Every: every})
		if err != nil {
			return nil, err
		}
		both = append(both, sweeper)
	}
	return both, nil
}
