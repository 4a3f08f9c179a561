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

// admission limits the concurrent transactions on a pool, in the order of their
// callers. A caller passes it before it takes a connection. All stores of one pool
// share one admission, because their handlers share the connection that it leaves
// free.
type admission struct {
	size int // number of concurrent transactions

	mu       sync.Mutex
	room     int
	waiting  []*txWaiter
	promised []*txWaiter // oldest first
	watched  bool        // expirePromises is scheduled
}

// txWaiter is a caller that waits for admission.
type txWaiter struct {
	of *Store
	id *store.ID // the record for which another transaction of the store may begin the caller's transaction; nil: none may
	in chan struct{}

	late time.Time    // end of the promise; zero: none
	got  *transaction // begun by another transaction for the caller
	over bool         // it was admitted, or has given up
}

// promised is how long a caller relies on another transaction to begin its own. A
// transaction that hangs must not delay other callers for longer.
const promised = 200 * time.Millisecond

// admissions has the admissions of the pools in use.
var admissions struct { //nolint:gochecknoglobals // a pool belongs to no store
	mu sync.Mutex
	of map[weak.Pointer[pgxpool.Pool]]*admission
}

// admissionOf returns the admission of a pool, which admits one transaction fewer
// than there are connections.
func admissionOf(pool *pgxpool.Pool, conns int) *admission {
	admissions.mu.Lock()
	defer admissions.mu.Unlock()
	key := weak.Make(pool)
	if g := admissions.of[key]; g != nil {
		return g
	}
	if admissions.of == nil {
		admissions.of = make(map[weak.Pointer[pgxpool.Pool]]*admission)
	}
	g := &admission{size: conns - 1, room: conns - 1}
	admissions.of[key] = g
	runtime.AddCleanup(pool, func(key weak.Pointer[pgxpool.Pool]) {
		admissions.mu.Lock()
		defer admissions.mu.Unlock()
		delete(admissions.of, key)
	}, key)
	return g
}

// enter waits for admission. If another transaction of the store has begun the
// caller's transaction meanwhile, enter returns it.
func (g *admission) enter(ctx context.Context, of *Store, id *store.ID) (*transaction, error) {
	g.mu.Lock()
	if g.room > 0 {
		g.room--
		g.mu.Unlock()
		return nil, nil
	}
	w := &txWaiter{of: of, id: id, in: make(chan struct{})}
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

// giveUp reports whether w gave up before it was admitted.
func (g *admission) giveUp(w *txWaiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.over {
		return false
	}
	w.over = true
	g.remove(w)
	return true
}

// leave admits the caller that has waited longest.
func (g *admission) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.room++
		return
	}
	g.admit(g.waiting[0], nil)
}

// hasWaiters reports whether a caller waits.
func (g *admission) hasWaiters() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0
}

// promiseNext promises the caller that has waited longest that another transaction
// of the store begins its transaction, by admitWith, or else by leave and keep. If
// that takes long, the caller is admitted otherwise.
func (g *admission) promiseNext(of *Store) *txWaiter {
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
		time.AfterFunc(promised, g.expirePromises)
	}
	return w
}

// expirePromises admits callers whose promise is too old otherwise. One timer
// serves all promises.
func (g *admission) expirePromises() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.promised) > 0 {
		w := g.promised[0]
		if left := time.Until(w.late); left > 0 { //nolint:forbidigo // no instant of the protocol's
			time.AfterFunc(left, g.expirePromises)
			return
		}
		g.remove(w)
		g.readmit(w)
	}
	g.watched = false
}

// admitWith admits w with the transaction that was begun for it. If w has given up,
// it returns false, and both remain the caller's.
func (g *admission) admitWith(w *txWaiter, begun *transaction) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.over {
		return false
	}
	g.admit(w, begun)
	return true
}

// readmit lets w wait again, before all others except those that were readmitted
// before it. mu is locked.
func (g *admission) readmit(w *txWaiter) {
	if g.room > 0 {
		g.room--
		g.admit(w, nil)
		return
	}
	others := slices.IndexFunc(g.waiting, func(o *txWaiter) bool { return o.late.IsZero() })
	if others < 0 {
		others = len(g.waiting)
	}
	g.waiting = slices.Insert(g.waiting, others, w)
}

// admit admits w. mu is locked.
func (g *admission) admit(w *txWaiter, begun *transaction) {
	g.remove(w)
	w.got, w.over = begun, true
	close(w.in)
}

// remove removes w from its list. mu is locked.
func (g *admission) remove(w *txWaiter) {
	for _, all := range []*[]*txWaiter{&g.waiting, &g.promised} {
		if i := slices.Index(*all, w); i >= 0 {
			*all = slices.Delete(*all, i, i+1)
		}
	}
}
