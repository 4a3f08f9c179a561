package task

import (
	"context"
	"errors"

	"github.com/semelgo/semel"
)

// Worker runs waiting calls of the operations it has functions for, and stores how
// they ended. Give it the functions with [Handle] and [HandleTx], then Run it. Any
// number of workers, in any number of processes, share the work of a store.
type Worker[Tx any] struct {
	engine  *semel.Engine[Tx]
	untyped *untypedWorker
}

var (
	// ErrRunning refuses to Run a worker that runs, and to give it functions then.
	ErrRunning = errors.New("task: the worker runs already")
	// ErrStopped is the cause of the cancelled context that a function sees whose
	// worker was stopped and could wait no longer. An attempt that returns an error
	// then counts neither as an error nor as a crash.
	ErrStopped = errors.New("task: the worker was stopped")
)

// New returns a worker of the operations that e was given. Wrong options are a
// *semel.FieldError.
func New[Tx any](e *semel.Engine[Tx], o Options) (*Worker[Tx], error) {
	if e == nil {
		return nil, invalid("engine", "is nil")
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if _, err := semel.NewSweeper(e, o.Sweeper); err != nil {
		return nil, err
	}
	return &Worker[Tx]{engine: e, untyped: newUntypedWorker(e.Core, o)}, nil
}

// Run works until ctx ends, and returns nil once everything has ended that it has
// begun. Then it may be run again.
//
// When ctx ends nothing more is claimed, and the functions that run may finish.
// After Options.Drain their contexts end with the cause [ErrStopped]; a function
// that returns an error then has been interrupted, and its task is given back, or is
// InDoubt where its policy does not run again and the error proves nothing. Run waits for a function that ignores that, and keeps its lease: to wait no longer,
// end the process.
//
// Running a worker without functions is a *semel.FieldError, and one that runs
// [ErrRunning]. When the engine is closed, Run returns [semel.ErrClosed]. What the
// store does not answer is told to the engine's Observer, and asked again.
func (w *Worker[Tx]) Run(ctx context.Context) error { return w.untyped.run(ctx) }

// Wake makes a running worker look for tasks at once: call it when a transaction
// has committed that enqueued some. It never waits.
func (w *Worker[Tx]) Wake() { signal(w.untyped.wakeups) }

// signal leaves word in a channel that holds one, unless there is some already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
