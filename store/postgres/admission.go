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

// admissions has the admissions of the pools in use, by a weak pointer to the pool.
var admissions sync.Map //nolint:gochecknoglobals // a pool belongs to no store

// admissionOf returns the admission of a pool, which admits one transaction fewer
// than there are connections.
func admissionOf[Pool any](pool *Pool, conns int) *admission {
	key := weak.Make(pool)
	a, known := admissions.LoadOrStore(key, &admission{make(chan struct{}, conns-1)})
	if !known {
		runtime.AddCleanup(pool, func(key weak.Pointer[Pool]) { admissions.Delete(key) }, key)
	}
	return a.(*admission)
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
