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

func (p *untypedWorker) addHandler(op semel.Declared, name string, o HandlerOptions, inTx bool,
	run func(ctx context.Context, a *semel.Attempt) (any, error),
) error {
	if err := o.valid(); err != nil {
		return err
	}
	if err := adapter.CheckWorker(p.core, op, inTx); err != nil {
		return fmt.Errorf("handle %s: %w", name, err)
	}
	limit := p.options.Slots
	if o.Concurrency > 0 {
		limit = o.Concurrency
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		return ErrRunning
	}
	for _, k := range p.kinds {
		if k.name == name {
			return invalid("Operation", "has a function already: "+name)
		}
	}
	p.kinds = append(p.kinds, &kind{
		op: op, name: name, times: adapter.TimesOf(p.core, op), limit: limit, timeout: o.Timeout, inTx: inTx, run: run,
	})
	return nil
}

// shortest returns the smallest of the durations that get selects from the
// kinds.
func (p *untypedWorker) shortest(get func(adapter.Times) time.Duration) time.Duration {
	least := get(p.kinds[0].times)
	for _, k := range p.kinds[1:] {
		least = min(least, get(k.times))
	}
	return least
}
