package lane

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// look has somebody look at those who wait when at has come. Mostly they are taken
// long before, so one timer serves them all, and goes off once in a Timeout.
func (l *Lane[K, Q, A]) look(at time.Time) {
	if l.watched || l.config.Steps != nil {
		return
	}
	l.watched = true
	left := time.Until(at) //nolint:forbidigo // compared with nothing of the store's
	if l.watch == nil {
		l.watch = time.AfterFunc(left, l.turnAway)
		return
	}
	l.watch.Reset(left)
}

// turnAway tells those who have waited for too long that nothing was sent. They
// come in the order of their time.
func (l *Lane[K, Q, A]) turnAway() {
	l.mu.Lock()
	var late []*Item[Q, A]
	for _, it := range l.waiting {
		if time.Until(it.until) > 0 { //nolint:forbidigo // as above
			break
		}
		it.taken = true
		late = append(late, it)
	}
	l.waiting = slices.Delete(l.waiting, 0, len(late))
	l.out(len(late))
	if l.watched = false; len(l.waiting) > 0 {
		l.look(l.waiting[0].until)
	}
	l.mu.Unlock()
	for _, it := range late {
		it.err = fmt.Errorf("%w: %w", ErrNotSent, context.DeadlineExceeded)
		it.done <- struct{}{}
	}
}
