package task

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel"
)

// untypedWorker is the part of a Worker that does not depend on the type of its
// transactions.
type untypedWorker struct {
	core       *semel.Core
	options    Options
	completer  *completer     // of the current Run
	goroutines *goroutinePool // of the current Run
	wakeups    chan struct{}  // holds a value when the worker should look for tasks now
	freed      chan struct{}  // holds a value when a slot has become free
	inflight   sync.WaitGroup // counts claimed attempts that have not ended

	mu       sync.Mutex // guards the fields below
	running  bool
	kinds    []*kind // not changed while the worker runs
	nextKind int     // where the next search for a kind begins
	attempts map[*semel.Attempt]struct{}
}

func newUntypedWorker(c *semel.Core, o Options) *untypedWorker {
	return &untypedWorker{
		core: c, options: o,
		wakeups: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		attempts: make(map[*semel.Attempt]struct{}),
	}
}

func (p *untypedWorker) run(ctx context.Context) error {
	if err := p.markRunning(); err != nil {
		return err
	}
	defer p.markStopped()
	sweeper, err := p.sweeper()
	if err != nil {
		return err
	}
	// Functions may continue after ctx ends, for up to Options.Drain.
	alive, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	p.goroutines = newGoroutinePool()
	defer p.goroutines.close()
	p.completer = &completer{core: p.core, ctx: alive, goroutines: p.goroutines, freeSlots: p.freeSlots}
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	defer still()
	claiming, stop := context.WithCancel(ctx)
	defer stop()
	var duties sync.WaitGroup
	duties.Go(func() { p.heartbeatLoop(beating) })
	if !p.options.NoSweeper {
		duties.Go(func() { _ = sweeper.Run(claiming) }) // it always returns nil
	}
	err = p.claimLoop(claiming, alive)
	stop()
	p.drain(end)
	still()
	duties.Wait()
	return err
}

func (p *untypedWorker) markRunning() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return ErrRunning
	}
	if len(p.kinds) == 0 {
		return invalid("Worker", "has no functions; register some with Handle or HandleTx")
	}
	p.running = true
	return nil
}

func (p *untypedWorker) markStopped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
}

func (p *untypedWorker) sweeper() (*semel.Sweeper, error) {
	o := p.options.Sweeper
	if o.Every == 0 {
		o.Every = p.shortest(func(t semel.Times) time.Duration { return t.Lease }) / 3
	}
	return semel.NewSweeper(p.core, o)
}

// drain waits for the in-flight attempts. After Options.Drain it cancels their
// contexts and goes on waiting.
func (p *untypedWorker) drain(end context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.inflight.Wait()
	}()
	patience := time.NewTimer(p.options.Drain)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		end(ErrStopped)
		<-done
	}
}

// heartbeatLoop renews the leases of all running attempts, at the shortest
// heartbeat interval of the kinds.
func (p *untypedWorker) heartbeatLoop(ctx context.Context) {
	ticks := time.NewTicker(p.shortest(func(t semel.Times) time.Duration { return t.Heartbeat }))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			p.renewLeases(ctx)
		}
	}
}

func (p *untypedWorker) renewLeases(ctx context.Context) {
	p.mu.Lock()
	attempts := make([]*semel.Attempt, 0, len(p.attempts))
	for a := range p.attempts {
		attempts = append(attempts, a)
	}
	p.mu.Unlock()
	p.core.RenewLeases(ctx, attempts)
}
