package engine

import (
	"context"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// The keys of an operation's values in its function's context. An operation answers
// all of them, possibly with nil, so that a function never finds a value of an
// outer operation.
type (
	attemptKey struct{} // *Attempt
	callKey    struct{} // Call
	txKey      struct{} // txValue
)

// txValue is a transaction with the engine that opened it.
type txValue struct {
	c  *Core
	tx any
}

// operationContext is the function's context of an operation that is a single
// transaction.
type operationContext struct {
	context.Context //nolint:containedctx // it is one

	call  Call
	c     *Core // nil: DoBatch, whose function has no transaction
	tx    any
	after callbacks
}

// withOperation returns the context for the function of c, in the transaction tx of
// the engine e, and what is to be called after the transaction. Both are nil if there is
// no transaction.
func withOperation(ctx context.Context, c Call, e *Core, tx any) (context.Context, *callbacks) {
	o := &operationContext{Context: ctx, call: c, c: e, tx: tx}
	return o, &o.after
}

// Value returns the operation's values.
func (o *operationContext) Value(key any) any {
	switch key := key.(type) {
	case callKey:
		return o.call
	case attemptKey, waitContextKey:
		return nil
	case txKey:
		if o.c == nil {
			return nil
		}
		return txValue{o.c, o.tx}
	case callbacksKey:
		return &o.after
	case openTxKey:
		if o.c != nil && o.c.connections == key.connections {
			return true
		}
	}
	return o.Context.Value(key)
}

// txContext is the context of InTx's function. Its operation is that of the
// attempt.
type txContext struct {
	context.Context //nolint:containedctx // it is one

	value txValue
	after callbacks
}

// withTx returns the context for a function of InTx, and what is to be called after the
// transaction.
func withTx(ctx context.Context, c *Core, tx any) (context.Context, *callbacks) {
	t := &txContext{Context: ctx, value: txValue{c, tx}}
	return t, &t.after
}

// Value returns the transaction.
func (t *txContext) Value(key any) any {
	switch key := key.(type) {
	case txKey:
		return t.value
	case callbacksKey:
		return &t.after
	case openTxKey:
		if t.value.c.connections == key.connections {
			return true
		}
	}
	return t.Context.Value(key)
}

// openTxKey is the key for whether a transaction over these connections is open,
// of the innermost operation or of an outer one.
type openTxKey struct{ connections any }

// notWithinTx rejects a call that would wait for a transaction that is open around
// ctx: a call that needs a transaction of its own, because both use connections of
// one pool, and on a store that lets one transaction write at a time every call
// that writes.
func (c *Core) notWithinTx(ctx context.Context, opens bool) error {
	if !opens && c.caps.Exclusion != store.ExcludesAll || ctx.Value(openTxKey{c.connections}) == nil {
		return nil
	}
	if opens {
		return callerr.Invalid("ctx", "belongs to an open transaction over the same connections: a second one could wait for it")
	}
	return callerr.Invalid("ctx", "belongs to an open transaction of this database, which must end before any other write")
}
