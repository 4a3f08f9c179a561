package task

import (
	"context"
	"slices"
	"sync"

	"github.com/semelgo/semel"
)

// completer ends attempts that succeeded: all that have gathered while the store
// was asked the last time are ended by one asking. Nobody waits for others to come,
// and no goroutine for the answer.
type completer struct {
	core       *semel.Core
	ctx        context.Context //nolint:containedctx // the worker's: what ends together is not of one attempt
	goroutines *goroutinePool
	freeSlots  func(ended ...*run)

	mu      sync.Mutex // guards what follows
	busy    bool       // the store is asked, or about to be
	waiting []*run
}

// add ends what has succeeded with v, and frees its slot once that is answered.
func (c *completer) add(r *run, v any) {
	r.completion = semel.Completion{Attempt: r.attempt, Value: v}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	if !c.busy {
		c.busy = true
		c.goroutines.submitFirst(c.flush)
	}
}

// flush ends all that wait.
func (c *completer) flush() {
	c.mu.Lock()
	together := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	ends := make([]*semel.Completion, len(together))
	for i, r := range together {
		ends[i] = &r.completion
	}
	rest := ends // should an Observer panic: each then meets that by itself
	defer func() {
		_ = recover()
		c.settle(together, rest)
	}()
	rest = c.core.CompleteMany(c.ctx, ends)
}

// settle frees what was settled, ends the rest one by one, and asks for those who
// came meanwhile.
func (c *completer) settle(together []*run, rest []*semel.Completion) {
	if len(rest) > 0 {
		together = slices.DeleteFunc(together, func(r *run) bool {
			left := slices.Contains(rest, &r.completion)
			if left {
				c.goroutines.submit(func() { c.completeOne(r) })
			}
			return left
		})
	}
	c.freeSlots(together...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = len(c.waiting) > 0; c.busy {
		c.goroutines.submitFirst(c.flush)
	}
}

// completeOne ends what could not be ended with others.
func (c *completer) completeOne(r *run) {
	defer c.freeSlots(r)
	defer abandon(r.attempt, new(bool))
	_, _ = r.attempt.End(r.completion.Value, nil)
}
