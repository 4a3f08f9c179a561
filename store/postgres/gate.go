package postgres

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
)

// gate lets in as many as may run a transaction on a pool at a time, one after the other
// as they came. It is passed before a connection is taken. All stores of one pool pass the
// same gate: handlers need the connection that it leaves free, whichever store they run in.
type gate struct {
	size int // how many transactions at a time

	mu       sync.Mutex
	room     int
	waiting  []*waiter
	promised []*waiter // since before those behind them
	watched  bool      // for those whose promise gets old
}

// waiter is a caller that waits to be let in.
type waiter struct {
	of *Store
	id *store.ID // for which another transaction of the store may begin its own as it ends; nil: none may
	in chan struct{}

	late time.Time    // when what it was promised takes too long; zero: nothing was
	got  *transaction // that another has begun for it
	over bool         // it was let in, or has given up
}

// promised is how long who waits relies on another to begin for it: one that hangs is
// not to hold up who has nothing to do with it.
const promised = 200 * time.Millisecond

// gates are those of the pools that are in use.
var gates struct { //nolint:gochecknoglobals // a pool belongs to no store
	mu sync.Mutex
	of map[weak.Pointer[pgxpool.Pool]]*gate
}

// gateOf returns the gate of pool, which lets in one fewer than there are connections.
func gateOf(pool *pgxpool.Pool, conns int) *gate {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	key := weak.Make(pool)
	if g := gates.of[key]; g != nil {
		return g
	}
	if gates.of == nil {
		gates.of = make(map[weak.Pointer[pgxpool.Pool]]*gate)
	}
	g := &gate{size: conns - 1, room: conns - 1}
	gates.of[key] = g
	runtime.AddCleanup(pool, func(key weak.Pointer[pgxpool.Pool]) {
		gates.mu.Lock()
		defer gates.mu.Unlock()
		delete(gates.of, key)
	}, key)
	return g
}

// enter waits until there is room. If another transaction of the store has begun one for
// id by then, it is returned.
func (g *gate) enter(ctx context.Context, of *Store, id *store.ID) (*transaction, error) {
	g.mu.Lock()
	if g.room > 0 {
		g.room--
		g.mu.Unlock()
		return nil, nil
	}
	w := &waiter{of: of, id: id, in: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.in:
	case <-ctx.Done():
		if g.giveUp(w) {
			return nil, fmt.Errorf("wait for one of the %d transactions that the pool's MaxConns allow at a time: %w", g.size, ctx.Err())
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

// next promises a transaction to the caller that has waited longest, if another
// transaction of the store may begin it: by letIn, or else by leave and keep. The caller is
// let in otherwise when that takes long.
func (g *gate) next(of *Store) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return nil
	}
	w := g.waiting[0]
	if w.of != of || w.id == nil || !w.late.IsZero() {
		return nil
	}
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
