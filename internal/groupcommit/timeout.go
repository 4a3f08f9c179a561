package groupcommit

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// setTimer calls expire at the deadline of a waiting item. A batch mostly takes items
// long before their deadlines. One timer therefore serves all of them and fires once
// per Timeout.
func (g *Batcher[K, Req, Res]) setTimer(deadline time.Time) {
	if g.timerSet || g.config.Scheduler != nil {
		return
	}
	g.timerSet = true
	left := time.Until(deadline) //nolint:forbidigo // not compared with the store's times
	if g.timer == nil {
		g.timer = time.AfterFunc(left, g.expire)
		return
	}
	g.timer.Reset(left)
}

// expire fails the waiting items whose deadlines have passed. The list of waiting
// items is ordered by deadline.
func (g *Batcher[K, Req, Res]) expire() {
	g.mu.Lock()
	var expired []*Item[Req, Res]
	for _, it := range g.waiting {
		if time.Until(it.deadline) > 0 { //nolint:forbidigo // as above
			break
		}
		it.taken = true
		expired = append(expired, it)
	}
	g.waiting = slices.Delete(g.waiting, 0, len(expired))
	g.removePending(len(expired))
	if g.timerSet = false; len(g.waiting) > 0 {
		g.setTimer(g.waiting[0].deadline)
	}
	g.mu.Unlock()
	for _, it := range expired {
		it.err = fmt.Errorf("%w: %w", ErrNotSent, context.DeadlineExceeded)
		close(it.done)
	}
}
