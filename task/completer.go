package task

import (
	"context"
	"slices"
	"sync"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// completer completes successful attempts in batches. While one Swap is
// running, further successes gather; the next Swap completes all of them. An
// attempt never waits for others to join its batch, and no goroutine waits for
// the Swap's answer.
type completer struct {
	engine     semel.Runner
	ctx        context.Context //nolint:containedctx // the worker's context: a batch belongs to no single attempt
	goroutines *goroutinePool
	freeSlots  func(ended ...*run)

	mu      sync.Mutex // guards the fields below
	busy    bool       // a flush is running or has been submitted
	waiting []*run
}

// add queues the success of r with the result v. The slot of r is freed when
// the store has confirmed the completion.
func (c *completer) add(r *run, v any) {
	r.completion = adapter.Completion{Attempt: r.attempt, Value: v}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	if !c.busy {
		c.busy = true
		c.goroutines.submitFirst(c.flush)
	}
}

// flush completes all waiting attempts in one batch.
func (c *completer) flush() {
	c.mu.Lock()
	runs := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	ends := make([]*adapter.Completion, len(runs))
	for i, r := range runs {
		ends[i] = &r.completion
	}
	remaining := ends // if an Observer panics, every attempt is completed alone
	defer func() {
		_ = recover()
		c.settle(runs, remaining)
	}()
	remaining = adapter.CompleteMany(c.ctx, c.engine, ends)
}

// settle frees the slots of the completed attempts, completes the remaining
// ones one by one, and starts the next flush if further attempts are waiting.
func (c *completer) settle(runs []*run, remaining []*adapter.Completion) {
	if len(remaining) > 0 {
		runs = slices.DeleteFunc(runs, func(r *run) bool {
			left := slices.Contains(remaining, &r.completion)
			if left {
				c.goroutines.submit(func() { c.completeOne(r) })
			}
			return left
		})
	}
	c.freeSlots(runs...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = len(c.waiting) > 0; c.busy {
		c.goroutines.submitFirst(c.flush)
	}
}

// completeOne completes an attempt that could not be completed in a batch.
func (c *completer) completeOne(r *run) {
	defer c.freeSlots(r)
	defer abandon(r.attempt, new(bool))
	_, _ = r.attempt.End(r.completion.Value, nil)
}
