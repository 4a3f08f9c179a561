package task

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
)

// Worker runs the queued calls of its operations and stores their outcomes.
// Register functions with [Handle] and [HandleTx], then call Run. Any number of
// workers, in any number of processes, share the queue of a store.
type Worker[Tx any] struct {
	engine  *semel.Engine[Tx]
	untyped *untypedWorker
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
func New[Tx any](e *semel.Engine[Tx], o Options) (*Worker[Tx], error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if _, err := admin.NewSweeper(e, o.Sweeper); err != nil {
		return nil, err
	}
	return &Worker[Tx]{engine: e, untyped: newUntypedWorker(e.Core, o)}, nil
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
func (w *Worker[Tx]) Run(ctx context.Context) error { return w.untyped.run(ctx) }

// Wake makes a running worker look for tasks at once. Call it after a
// transaction that enqueued tasks has committed. It never blocks.
func (w *Worker[Tx]) Wake() { signal(w.untyped.wakeups) }

// signal sends to a channel with a buffer of one, unless the buffer is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
