package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
)

// Worker runs the queued calls of its operations and stores their outcomes.
// Register functions with [Handle] and [HandleTx], then call Run. Any number of
// workers, in any number of processes, share the queue of a store.
type Worker struct {
	engine     semel.Runner
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

var (
	// ErrRunning is the error of Run, Handle and HandleTx on a worker that is
	// already running.
	ErrRunning = errors.New("task: the worker is already running")
	// ErrStopped is the cause of a function's cancelled context when its worker
	// was stopped and Options.Drain has passed. If the function then returns an
	// error, the attempt counts neither as an error nor as a crash.
	ErrStopped = errors.New("task: the worker was stopped")
)

// New returns a worker for the operations of e. If an option is invalid, the
// error is a *semel.FieldError.
func New(e semel.Runner, o Options) (*Worker, error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if _, err := admin.NewSweeper(e, o.Sweeper); err != nil {
		return nil, err
	}
	return &Worker{
		engine: e, options: o,
		wakeups: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		attempts: make(map[*semel.Attempt]struct{}),
	}, nil
}

// Run claims and runs tasks until ctx ends. It returns nil when every task that
// it started has ended. The worker may be run again afterwards.
//
// When ctx ends, Run claims nothing more, and running functions may finish.
// After Options.Drain their contexts end with the cause [ErrStopped]. A
// function that then returns an error was interrupted: its task is released, or
// becomes InDoubt if its policy allows no further attempt and the error proves
// nothing. Run waits for a function that ignores its context, and keeps
// renewing its lease. To wait no longer, end the process.
//
// The error is a *semel.FieldError if the worker has no functions, [ErrRunning]
// if it is already running, and [semel.ErrClosed] if the engine is closed. Run
// reports errors of the store to the engine's Observer, and retries.
func (w *Worker) Run(ctx context.Context) error {
	return w.run(ctx, func(claimCtx, runCtx context.Context) error {
		sweeper, err := w.sweeper()
		if err != nil {
			return err
		}
		var background sync.WaitGroup
		sweepCtx, stopSweeper := context.WithCancel(claimCtx)
		defer background.Wait()
		defer stopSweeper()
		if !w.options.NoSweeper {
			background.Go(func() { _ = sweeper.Run(sweepCtx) }) // it always returns nil
		}
		return w.claimLoop(claimCtx, runCtx)
	})
}

// run calls claims, which claims tasks and starts them, and waits until they have ended.
// The tasks have runCtx, which does not end with ctx.
func (w *Worker) run(ctx context.Context, claims func(ctx, runCtx context.Context) error) error {
	if err := w.markRunning(); err != nil {
		return err
	}
	defer w.markStopped()
	// Functions may continue after ctx ends, for up to Options.Drain.
	runCtx, cancelRuns := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRuns(nil)
	w.goroutines = newGoroutinePool()
	defer w.goroutines.close()
	w.completer = &completer{engine: w.engine, ctx: runCtx, goroutines: w.goroutines, freeSlots: w.freeSlots}
	heartbeatCtx, stopHeartbeats := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHeartbeats()
	var background sync.WaitGroup
	background.Go(func() { w.heartbeatLoop(heartbeatCtx) })
	err := claims(ctx, runCtx)
	w.drain(cancelRuns)
	stopHeartbeats()
	background.Wait()
	return err
}

// Wake makes a running worker look for tasks at once. Call it after a
// transaction that enqueued tasks has committed. It never blocks.
func (w *Worker) Wake() { signal(w.wakeups) }

// signal sends to a channel with a buffer of one, unless the buffer is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Worker) markRunning() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return ErrRunning
	}
	if len(w.kinds) == 0 {
		return invalid("Worker", "has no functions; register some with Handle or HandleTx")
	}
	w.running = true
	return nil
}

func (w *Worker) markStopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

func (w *Worker) sweeper() (*admin.Sweeper, error) {
	o := w.options.Sweeper
	if o.Every == 0 {
		o.Every = w.shortest(func(t adapter.Times) time.Duration { return t.Lease }) / 3
	}
	return admin.NewSweeper(w.engine, o)
}

// drain waits for the in-flight attempts. After Options.Drain it cancels their
// contexts and goes on waiting.
func (w *Worker) drain(cancelRuns context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.inflight.Wait()
	}()
	timer := time.NewTimer(w.options.Drain)
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
func (w *Worker) heartbeatLoop(ctx context.Context) {
	ticks := time.NewTicker(w.shortest(func(t adapter.Times) time.Duration { return t.Heartbeat }))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.renewLeases(ctx)
		}
	}
}

func (w *Worker) renewLeases(ctx context.Context) {
	w.mu.Lock()
	attempts := make([]*semel.Attempt, 0, len(w.attempts))
	for a := range w.attempts {
		attempts = append(attempts, a)
	}
	w.mu.Unlock()
	adapter.RenewLeases(ctx, w.engine, attempts)
}
