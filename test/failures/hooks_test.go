package failures_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
)

// hooks is a store with places where something can happen: the next call, or
// the end of the next transaction's function.
type hooks[Tx any] struct {
	store.TxStore[Tx]

	mu    sync.Mutex
	call  func() // guarded by mu, like end and swap
	end   func()
	swaps func([]store.Change) error
}

// onCall has fn called before the next transaction or change.
func (h *hooks[Tx]) onCall(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = fn
}

// onEnd has fn called when the next transaction is about to commit.
func (h *hooks[Tx]) onEnd(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = fn
}

// refuse has every Swap asked whether it may be made; nil ends it.
func (h *hooks[Tx]) refuse(fn func([]store.Change) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.swaps = fn
}

// take empties a hook and runs what was in it.
func (h *hooks[Tx]) take(hook *func()) {
	h.mu.Lock()
	fn := *hook
	*hook = nil
	h.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func (h *hooks[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.Standing, error) {
	h.take(&h.call)
	h.mu.Lock()
	may := h.swaps
	h.mu.Unlock()
	if may != nil {
		if err := may(changes); err != nil {
			return nil, err
		}
	}
	return h.TxStore.Swap(ctx, changes)
}

func (h *hooks[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, stands store.Standing) (*store.Change, error),
) (store.Verdict, error) {
	h.take(&h.call)
	return h.TxStore.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, stands store.Standing) (*store.Change, error) {
		c, err := run(ctx, tx, stands)
		if c != nil {
			h.take(&h.end)
		}
		return c, err
	})
}
