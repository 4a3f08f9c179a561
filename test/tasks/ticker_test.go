//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// ticked runs at each tick.
var ticked = semel.Define("ticked", semel.OperationOptions[time.Time]{Policy: semel.Atomic(), Lease: lease, Retry: patient()})

// point is where a process kills itself during a tick.
type point string

const (
	nowhere    point = "nowhere"
	before     point = "before"     // before it enqueues the tick
	meanwhile  point = "meanwhile"  // during the store call
	unanswered point = "unanswered" // after the tick was enqueued, before the reply
	afterwards point = "afterwards" // the tick was enqueued, before the reply
	soon       point = "soon"       // at any time
)

func points() []point { return []point{before, meanwhile, unanswered, afterwards, soon} }

// reach kills the process if it is to die here.
func (p point) reach(here point) {
	if p == here {
		crash()
	}
}

// killingStore is a store that kills the process during a call.
type killingStore[Tx any] struct {
	store.TxStore[Tx]

	mu      sync.Mutex
	crashes point // guarded by mu
}

func (s *killingStore[Tx]) crash(at point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes = at
}

// Swap implements store.Store.
func (s *killingStore[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	s.mu.Lock()
	crashes := s.crashes
	s.mu.Unlock()
	if crashes == meanwhile {
		go func() {
			<-time.After(rand.N(time.Millisecond))
			crashes.reach(meanwhile)
		}()
	}
	answers, err := s.TxStore.Swap(ctx, changes)
	crashes.reach(unanswered)
	return answers, err
}

// runTicker enqueues the ticks that it is given, reports them, and runs tasks.
func runTicker[Tx any](ctx context.Context, c child, s *database[Tx], m *counters) error {
	killingStore := &killingStore[Tx]{TxStore: s.store}
	e, err := semel.New(killingStore, semel.Options{Survive: store.NoFailure, Operations: c.operations(), Observer: m})
	if err != nil {
		return err
	}
	periodic, err := task.NewPeriodic(e, task.PeriodicOptions[time.Time]{
		Name: "minute", Schedule: task.Every(time.Minute), Operation: ticked, Scope: semel.Shared(),
		Input: func(tick time.Time) time.Time { return tick },
	})
	if err != nil {
		return err
	}
	working := make(chan error, 1)
	go func() { working <- runWorker(ctx, c, s, m) }()
	for {
		select {
		case command := <-commandsOf(ctx):
			if err := tickAs(ctx, command, periodic, killingStore.crash); err != nil {
				return err
			}
		case <-ctx.Done():
			return errors.Join(<-working, e.Close(context.WithoutCancel(ctx)))
		}
	}
}

// tickAs does what an order says: "tick", its time, and where to die.
func tickAs(ctx context.Context, command string, periodic *task.Periodic[time.Time], crash func(point)) error {
	var unix int64
	var at point
	if _, err := fmt.Sscanf(command, "tick %d %s", &unix, &at); err != nil {
		return fmt.Errorf("order %q: %w", command, err)
	}
	crash(at)
	if at == soon {
		go func() {
			<-time.After(rand.N(30 * time.Millisecond))
			at.reach(soon)
		}()
	}
	at.reach(before)
	added := false
	err := retryWhileBusy(ctx, func() (err error) {
		added, err = periodic.Tick(ctx, time.Unix(unix, 0))
		return err
	})
	if err != nil {
		return err
	}
	at.reach(afterwards)
	report(said(unix, added))
	return nil
}

// said is what a process says that has enqueued a tick, or found it enqueued.
func said(unix int64, added bool) string { return fmt.Sprintf("ticked %d %v", unix, added) }
