package failures_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
)

// swapHook is a store that can run a function before a change.
type swapHook struct {
	store.Store

	mu  sync.Mutex
	may func([]store.Change) error // guarded by mu
}

// hooks is a store that can run a function at a change, or at the end of the next
// transaction's function.
type hooks[Tx any] struct {
	store.TxStore[Tx]

	swaps *swapHook
	mu    sync.Mutex
	end   func() // guarded by mu
}

// onEnd calls fn when the next transaction is about to commit.
func (h *hooks[Tx]) onEnd(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = fn
}

// refuse calls may before every Swap, which then may fail; nil removes the hook.
func (h *swapHook) refuse(fn func([]store.Change) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.may = fn
}

// takeEnd removes the hook and runs it.
func (h *hooks[Tx]) takeEnd() {
	h.mu.Lock()
	fn := h.end
	h.end = nil
	h.mu.Unlock()
	if fn != nil {
		fn()
	}
}

func (h *hooks[Tx]) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	return h.swaps.Swap(ctx, changes)
}

func (h *swapHook) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	h.mu.Lock()
	may := h.may
	h.mu.Unlock()
	if may != nil {
		if err := may(changes); err != nil {
			return nil, err
		}
	}
	return h.Store.Swap(ctx, changes)
}

func (h *hooks[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return h.TxStore.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		c, err := run(ctx, tx, current)
		if c != nil {
			h.takeEnd()
		}
		return c, err
	})
}
