package server

import (
	"context"
	"errors"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/store"
)

// driverStore is a store over a driver's own transactions, and what it can do
// besides.
type driverStore[T any] interface {
	store.TxStore[T]
	store.Auditor
	store.Counter
	store.Dequeuer
}

// recordStore is a store over the chat's transactions, so that the server is
// the same whichever database it runs on.
type recordStore[T any] struct {
	driverStore[T]

	on func(T) chatdb.Tx
}

// records returns s as a store over the chat's transactions, which on makes of
// the driver's own.
func records[T any](s driverStore[T], on func(T) chatdb.Tx) store.TxStore[chatdb.Tx] {
	return recordStore[T]{s, on}
}

// Atomic hides that of the driver's transactions.
func (s recordStore[T]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, chatdb.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return s.driverStore.Atomic(ctx, id, hold,
		func(ctx context.Context, tx T, stands store.SwapResult) (*store.Change, error) {
			return run(ctx, s.on(tx), stands)
		})
}

var errOtherDatabase = errors.New("the transaction is one of another database")

// SwapTx hides that of the driver's transactions.
func (s recordStore[T]) SwapTx(ctx context.Context, tx chatdb.Tx, changes []store.Change) ([]store.SwapResult, error) {
	own, ok := chatdb.Beneath[T](tx)
	if !ok {
		return nil, errOtherDatabase
	}
	return s.driverStore.SwapTx(ctx, own, changes)
}
