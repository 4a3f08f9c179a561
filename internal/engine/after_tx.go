package engine

import (
	"context"
	"sync"
)

// callbacks has functions to be called after a transaction has ended.
type callbacks struct {
	mu  sync.Mutex
	all []func()
}

// callbacksKey is the key for the *callbacks of the innermost operation's transaction.
type callbacksKey struct{}

func (a *callbacks) add(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, fn)
}

// call calls the functions. A goroutine that the handler has left behind may still add
// some; those are not called.
func (a *callbacks) call() {
	a.mu.Lock()
	all := a.all
	a.all = nil
	a.mu.Unlock()
	for _, fn := range all {
		fn()
	}
}

// AfterTx has fn called once after the transaction of ctx has ended, committed or not,
// and reports whether ctx belongs to a transaction of c.
func AfterTx(ctx context.Context, c *Core, fn func()) bool {
	v, ok := ctx.Value(txKey{}).(txValue)
	if !ok || v.c != c {
		return false
	}
	a, ok := ctx.Value(callbacksKey{}).(*callbacks)
	if ok {
		a.add(fn)
	}
	return ok
}
