package task

import (
	"context"
	"sync"

	"github.com/semelgo/semel"
)

// completer ends attempts that succeeded: all that have gathered while the store
// was asked the last time are ended by one asking. Nobody waits for others to come.
type completer struct {
	core *semel.Core
	ctx  context.Context //nolint:containedctx // the worker's: what ends together is not of one attempt

	mu      sync.Mutex // guards what follows
	busy    bool       // somebody asks
	waiting []*completion
}

// completion is one end on its way.
type completion struct {
	semel.Ending

	turn chan bool // true: it is this one's turn to ask; false: it was answered
	left bool      // the answer did not settle it
}

// end ends a and returns once that is answered. It asks for itself and for those
// who came meanwhile, or is asked for by another.
func (c *completer) end(a *semel.Attempt, v any) {
	own := &completion{Ending: semel.Ending{Attempt: a, Value: v}, turn: make(chan bool, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, own)
	first := !c.busy
	c.busy = true
	c.mu.Unlock()
	if first || <-own.turn {
		c.ask(own)
	}
	if own.left {
		_, _ = a.End(v, nil)
	}
}

// ask ends all that wait, own among them, and then lets the next one ask.
func (c *completer) ask(own *completion) {
	c.mu.Lock()
	together := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	ends := make([]*semel.Ending, len(together))
	of := make(map[*semel.Ending]*completion, len(together))
	for i, e := range together {
		e.left = true // should an Observer panic
		ends[i], of[&e.Ending] = &e.Ending, e
	}
	defer c.answer(together, own)
	rest := c.core.EndTogether(c.ctx, ends)
	for _, e := range together {
		e.left = false
	}
	for _, e := range rest {
		of[e].left = true
	}
}

// answer tells those who waited, and lets one of those ask who came meanwhile.
func (c *completer) answer(together []*completion, own *completion) {
	for _, e := range together {
		if e != own {
			e.turn <- false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.busy = false
		return
	}
	c.waiting[0].turn <- true
}
