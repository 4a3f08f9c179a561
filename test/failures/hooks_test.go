package failures_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
)

// hooks is a store with places where something can happen: a change, or the end
// of the next transaction's function.
type hooks[Tx any] struct {
	store.TxStore[Tx]

	mu    sync.Mutex
	end   func() // guarded by mu, as swaps is
	swaps func([]store.Change) error
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

// ends empties the hook and runs what was in it.
func (h *hooks[Tx]) ends() {
	h.mu.Lock()
	fn := h.end
	h.end = nil
	h.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func (h *hooks[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
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
	run func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return h.TxStore.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
		c, err := run(ctx, tx, stands)
		if c != nil {
			h.ends()
		}
		return c, err
	})
}
