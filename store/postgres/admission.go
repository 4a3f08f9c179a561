package postgres

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"weak"
)

// admission limits the concurrent transactions on a pool, in the order of their
// callers. A caller passes it before it takes a connection. All stores of one pool
// share one admission, because their handlers share the connection that it leaves
// free.
type admission struct{ slots chan struct{} }

// admissions has the admissions of the pools in use.
var admissions struct { //nolint:gochecknoglobals // a pool belongs to no store
	mu sync.Mutex
	of map[any]*admission // by a weak pointer to the pool
}

// admissionOf returns the admission of a pool, which admits one transaction fewer
// than there are connections.
func admissionOf[Pool any](pool *Pool, conns int) *admission {
	admissions.mu.Lock()
	defer admissions.mu.Unlock()
	key := weak.Make(pool)
	if a := admissions.of[key]; a != nil {
		return a
	}
	if admissions.of == nil {
		admissions.of = make(map[any]*admission)
	}
	a := &admission{slots: make(chan struct{}, conns-1)}
	admissions.of[key] = a
	runtime.AddCleanup(pool, func(key weak.Pointer[Pool]) {
		admissions.mu.Lock()
		defer admissions.mu.Unlock()
		delete(admissions.of, key)
	}, key)
	return a
}

// enter waits for admission. Without an error the caller must call leave.
func (a *admission) enter(ctx context.Context) error {
	select {
	case a.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for one of the %d transactions that the pool's connections allow at a time: %w", cap(a.slots), ctx.Err())
	}
}

// leave admits the caller that has waited longest.
func (a *admission) leave() { <-a.slots }
