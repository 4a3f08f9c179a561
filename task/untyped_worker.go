package task

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
)

// untypedWorker is the part of a Worker that does not depend on the type of its
// transactions.
type untypedWorker struct {
	core       semel.Runner
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

func newUntypedWorker(c semel.Runner, o Options) *untypedWorker {
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
	runCtx, cancelRuns := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRuns(nil)
	p.goroutines = newGoroutinePool()
	defer p.goroutines.close()
	p.completer = &completer{core: p.core, ctx: runCtx, goroutines: p.goroutines, freeSlots: p.freeSlots}
	heartbeatCtx, stopHeartbeats := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHeartbeats()
	claimCtx, stopClaims := context.WithCancel(ctx)
	defer stopClaims()
	var background sync.WaitGroup
	background.Go(func() { p.heartbeatLoop(heartbeatCtx) })
	if !p.options.NoSweeper {
		background.Go(func() { _ = sweeper.Run(claimCtx) }) // it always returns nil
	}
	err = p.claimLoop(claimCtx, runCtx)
	stopClaims()
	p.drain(cancelRuns)
	stopHeartbeats()
	background.Wait()
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

func (p *untypedWorker) sweeper() (*admin.Sweeper, error) {
	o := p.options.Sweeper
	if o.Every == 0 {
		o.Every = p.shortest(func(t adapter.Times) time.Duration { return t.Lease }) / 3
	}
	return admin.NewSweeper(p.core, o)
}

// drain waits for the in-flight attempts. After Options.Drain it cancels their
// contexts and goes on waiting.
func (p *untypedWorker) drain(cancelRuns context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.inflight.Wait()
	}()
	timer := time.NewTimer(p.options.Drain)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		cancelRuns(ErrStopped)
		<-done
	}
}

// heartbeatLoop renews the leases of all running attempts, at the shortest
// heartbeat interval of the kinds.
func (p *untypedWorker) heartbeatLoop(ctx context.Context) {
	ticks := time.NewTicker(p.shortest(func(t adapter.Times) time.Duration { return t.Heartbeat }))
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
	adapter.RenewLeases(ctx, p.core, attempts)
}
