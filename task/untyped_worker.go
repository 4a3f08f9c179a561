package task

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel"
)

// untypedWorker is a worker without the type of its transactions.
type untypedWorker struct {
	core       *semel.Core
	options    Options
	completer  *completer     // of this run
	goroutines *goroutinePool // likewise
	wakeups    chan struct{}  // somebody says that there is something to do
	freed      chan struct{}  // a slot is free again
	inflight   sync.WaitGroup // what was claimed and has not ended

	mu       sync.Mutex // guards what follows
	running  bool
	kinds    []*kind // as they are once it runs
	nextKind int     // the kind that is asked for next
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
	// The functions outlive ctx by as long as they are waited for.
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
		duties.Go(func() { _ = sweeper.Run(claiming) }) // it returns nothing else than nil
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
		return invalid("Worker", "has no functions; give it some with Handle or HandleTx")
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

// drain waits for the work that is under way, and after a while tells it to end.
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

// heartbeatLoop renews the leases of all that runs, as often as the kind asks that
// asks for it most.
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
