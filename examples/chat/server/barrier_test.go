package server_test

import (
	"context"
	"sync/atomic"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
)

// barrier holds one creation at a point that the test chooses, and counts how
// often the handler is called.
type barrier struct {
	armed   atomic.Bool
	arrived chan struct{} // closed when a creation is held
	open    chan struct{}
	entered atomic.Int64
}

func newBarrier() *barrier {
	return &barrier{arrived: make(chan struct{}), open: make(chan struct{})}
}

// pass blocks the first creation that calls it until the barrier is opened.
func (b *barrier) pass() {
	if b.armed.CompareAndSwap(true, false) {
		close(b.arrived)
		<-b.open
	}
}

// at holds creations at the point where they hold the fewest locks in the given mode: inline in
// their transaction, and otherwise after their claim and before their transaction.
func (b *barrier) at(mode string) server.Hooks {
	to := server.Hooks{Create: func(next server.CreateFunc) server.CreateFunc {
		return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
			b.entered.Add(1)
			if mode == inline {
				b.pass()
			}
			return next(ctx, tx, n)
		}
	}}
	if mode == inline {
		return to
	}
	to.Records = func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] { return barrierStore{s, b} }
	to.Domain = func(next server.TransactFunc) server.TransactFunc {
		return func(ctx context.Context, fn func(context.Context, chatdb.Tx) error) error {
			b.pass()
			return next(ctx, fn)
		}
	}
	return to
}

type barrierStore struct {
	store.TxStore[chatdb.Tx]

	b *barrier
}

func (s barrierStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, chatdb.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if !hold {
		s.b.pass()
	}
	return s.TxStore.Atomic(ctx, id, hold, run)
}
