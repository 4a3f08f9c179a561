package server

import (
	"context"
	"errors"

	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/store"
)

// driverStore is a store of transactions of the driver's type, with the optional
// interfaces that all our stores implement.
type driverStore[T any] interface {
	store.TxStore[T]
	store.Auditor
	store.Counter
	store.Dequeuer
	store.OutboxStore[T]
}

// recordStore is a store of chatdb.Tx transactions, so that the server does not
// depend on the database.
type recordStore[T any] struct {
	driverStore[T]

	on func(T) chatdb.Tx
}

// txOutbox is an outbox for chatdb.Tx transactions.
type txOutbox[T any] struct{ store.Outbox[T] }

// In implements [store.Outbox].
func (o txOutbox[T]) In(tx chatdb.Tx) store.OutboxTx {
	own, ok := chatdb.Beneath[T](tx)
	if !ok {
		return refusedOutbox{}
	}
	return o.Outbox.In(own)
}

// refusedOutbox refuses the events of a transaction of another database.
type refusedOutbox struct{ store.OutboxTx }

// Append implements [store.OutboxTx].
func (refusedOutbox) Append(context.Context, []store.OutboxEvent) error { return errOtherDatabase }

// Outbox implements [store.OutboxStore].
func (s recordStore[T]) Outbox() store.Outbox[chatdb.Tx] { return txOutbox[T]{s.driverStore.Outbox()} }

// records wraps s. Function on wraps a transaction of the driver.
func records[T any](s driverStore[T], on func(T) chatdb.Tx) store.TxStore[chatdb.Tx] {
	return recordStore[T]{s, on}
}

// Atomic implements [store.TxStore].
func (s recordStore[T]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, chatdb.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return s.driverStore.Atomic(ctx, id, hold,
		func(ctx context.Context, tx T, current store.SwapResult) (*store.Change, error) {
			return run(ctx, s.on(tx), current)
		})
}

var errOtherDatabase = errors.New("the transaction is one of another database")

// SwapTx implements [store.TxStore].
func (s recordStore[T]) SwapTx(ctx context.Context, tx chatdb.Tx, changes []store.Change) ([]store.SwapResult, error) {
	own, ok := chatdb.Beneath[T](tx)
	if !ok {
		return nil, errOtherDatabase
	}
	return s.driverStore.SwapTx(ctx, own, changes)
}
