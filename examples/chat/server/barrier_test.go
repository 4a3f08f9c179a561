package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/store"
)

// barrier holds one creation at a point that the test chooses, and counts how
// often the handler is called.
type barrier struct {
	armed   atomic.Bool
	arrived chan struct{}
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

// await waits until a creation is held.
func (b *barrier) await(t *testing.T) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-b.arrived:
	case <-limit.C:
		t.Fatal("no creation came to the barrier")
	}
}

// inHandler holds a creation in its transaction.
func (b *barrier) inHandler() server.Hooks {
	return server.Hooks{Create: func(next server.CreateFunc) server.CreateFunc {
		return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
			b.entered.Add(1)
			b.pass()
			return next(ctx, tx, n)
		}
	}}
}

// beforeTransaction holds a creation after its claim and before its transaction.
func (b *barrier) beforeTransaction() server.Hooks {
	to := server.Hooks{
		Records: func(s store.TxStore[chatdb.Tx]) store.TxStore[chatdb.Tx] { return barrierStore{s, b} },
		Domain: func(next server.TransactFunc) server.TransactFunc {
			return func(ctx context.Context, fn func(context.Context, chatdb.Tx) error) error {
				b.pass()
				return next(ctx, fn)
			}
		},
	}
	to.Create = func(next server.CreateFunc) server.CreateFunc {
		return func(ctx context.Context, tx chatdb.Tx, n chatdb.NewGroup) (chatdb.Group, error) {
			b.entered.Add(1)
			return next(ctx, tx, n)
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

// at holds creations at the point where they hold the fewest locks in the given
// mode.
func (b *barrier) at(mode string) server.Hooks {
	if mode == inline {
		return b.inHandler()
	}
	return b.beforeTransaction()
}
