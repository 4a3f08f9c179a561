package task

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel"
)

// kind is one operation and the function that runs its tasks.
type kind struct {
	op      semel.Declared
	name    string
	times   semel.Times
	limit   int // the most that run at a time
	timeout time.Duration
	inTx    bool // the function ends its attempt itself, in its transaction
	run     func(ctx context.Context, a *semel.Attempt) (any, error)

	// Guarded by the pool's lock.
	busy        int  // how many run
	mayHaveMore bool // there may be more of them waiting
}

func (p *untypedWorker) addHandler(op semel.Declared, name string, o HandlerOptions, inTx bool,
	run func(ctx context.Context, a *semel.Attempt) (any, error),
) error {
	if err := o.valid(); err != nil {
		return err
	}
	if err := p.core.CheckWorker(op, inTx); err != nil {
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
		op: op, name: name, times: p.core.Times(op), limit: limit, timeout: o.Timeout, inTx: inTx, run: run,
	})
	return nil
}

// shortest is the least of what the kinds say.
func (p *untypedWorker) shortest(of func(semel.Times) time.Duration) time.Duration {
	least := of(p.kinds[0].times)
	for _, k := range p.kinds[1:] {
		least = min(least, of(k.times))
	}
	return least
}
