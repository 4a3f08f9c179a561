package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// gate lets in as many as may run a transaction at a time, one after the other as
// they came. It is passed before a connection is taken.
type gate struct {
	mu       sync.Mutex
	room     int
	waiting  []*waiter
	promised []*waiter // since before those behind them
	watched  bool      // for those whose promise gets old
}

// waiter is who waits to be let in.
type waiter struct {
	id *store.ID // for which another who ends may begin; nil: for none
	in chan struct{}

	late time.Time    // when what it was promised takes too long; zero: nothing was
	got  *transaction // that another has begun for it
	over bool         // it was let in, or has given up
}

// promised is how long who waits relies on another to begin for it: one that hangs is
// not to hold up who has nothing to do with it.
const promised = 200 * time.Millisecond

// enter waits until there is room. If another has begun a transaction for id by then,
// it is returned.
func (g *gate) enter(ctx context.Context, id *store.ID) (*transaction, error) {
	g.mu.Lock()
	if g.room > 0 {
		g.room--
		g.mu.Unlock()
		return nil, nil
	}
	w := &waiter{id: id, in: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.in:
	case <-ctx.Done():
		if g.giveUp(w) {
			return nil, ctx.Err()
		}
	}
	return w.got, nil
}

// giveUp reports whether w was not let in before it gave up.
func (g *gate) giveUp(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.over {
		return false
	}
	w.over = true
	g.remove(w)
	return true
}

// leave gives the room to who has waited longest.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.room++
		return
	}
	g.let(g.waiting[0], nil)
}

// crowded says that somebody waits.
func (g *gate) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0
}

// next promises a transaction to who has waited longest, if another may begin it: by
// letIn, or else by leave and keep. Who waits is let in otherwise when that takes long.
func (g *gate) next() *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.waiting[0].id == nil || !g.waiting[0].late.IsZero() {
		return nil
	}
	w := g.waiting[0]
	g.remove(w)
	w.late = time.Now().Add(promised) //nolint:forbidigo // no instant of the protocol's
	g.promised = append(g.promised, w)
	if !g.watched {
		g.watched = true
		time.AfterFunc(promised, g.watch)
	}
	return w
}

// watch lets down those whose promise is too old, and comes again for the others: there
// is one timer for all of them.
func (g *gate) watch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.promised) > 0 {
		w := g.promised[0]
		if left := time.Until(w.late); left > 0 { //nolint:forbidigo // no instant of the protocol's
			time.AfterFunc(left, g.watch)
			return
		}
		g.remove(w)
		g.letDown(w)
	}
	g.watched = false
}

// letIn gives the room, and what was begun for it, to who was promised it. If it is
// over for that one, both are still the caller's.
func (g *gate) letIn(w *waiter, begun *transaction) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.over {
		return false
	}
	g.let(w, begun)
	return true
}

// letDown has w wait for room again, before all others but those who came before it and
// were let down as well. The gate's mu is locked.
func (g *gate) letDown(w *waiter) {
	if g.room > 0 {
		g.room--
		g.let(w, nil)
		return
	}
	others := slices.IndexFunc(g.waiting, func(o *waiter) bool { return o.late.IsZero() })
	if others < 0 {
		others = len(g.waiting)
	}
	g.waiting = slices.Insert(g.waiting, others, w)
}

// let lets w in. The gate's mu is locked.
func (g *gate) let(w *waiter, begun *transaction) {
	g.remove(w)
	w.got, w.over = begun, true
	close(w.in)
}

// remove takes w out of where it is. The gate's mu is locked.
func (g *gate) remove(w *waiter) {
	for _, all := range []*[]*waiter{&g.waiting, &g.promised} {
		if i := slices.Index(*all, w); i >= 0 {
			*all = slices.Delete(*all, i, i+1)
		}
	}
}
