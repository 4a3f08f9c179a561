package task

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// kind is one operation and the function that runs its tasks.
type kind struct {
	op      semel.Declared
	name    string
	times   adapter.Times
	limit   int // maximum number of tasks that run at a time
	timeout time.Duration
	inTx    bool // the function itself ends the attempt, in its transaction
	run     func(ctx context.Context, a *semel.Attempt) (any, error)

	// Guarded by the worker's mutex.
	busy        int  // number of running tasks
	mayHaveMore bool // more tasks may be due
}

func (w *Worker) addHandler(op semel.Declared, name string, o HandlerOptions, inTx bool,
	run func(ctx context.Context, a *semel.Attempt) (any, error),
) error {
	if err := o.valid(); err != nil {
		return err
	}
	if err := adapter.CheckWorker(w.engine, op, inTx); err != nil {
		return fmt.Errorf("handle %s: %w", name, err)
	}
	limit := w.options.Slots
	if o.Concurrency > 0 {
		limit = o.Concurrency
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return ErrRunning
	}
	for _, k := range w.kinds {
		if k.name == name {
			return invalid("Operation", "has a function already: "+name)
		}
	}
	w.kinds = append(w.kinds, &kind{
		op: op, name: name, times: adapter.TimesOf(w.engine, op), limit: limit, timeout: o.Timeout, inTx: inTx, run: run,
	})
	return nil
}

// shortest returns the smallest of the durations that get selects from the
// kinds.
func (w *Worker) shortest(get func(adapter.Times) time.Duration) time.Duration {
	least := get(w.kinds[0].times)
	for _, k := range w.kinds[1:] {
		least = min(least, get(k.times))
	}
	return least
}
