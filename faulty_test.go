package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

type (
	faulty  = storetest.FaultyTx[*memory.Tx]
	fault   = storetest.Fault
	request = storetest.Call
)

var (
	errCut  = errors.New("connection cut")
	errDead = errors.New("process is dead")
)

func newFaulty(mem *memory.Store) *faulty { return storetest.NewFaultyTx(mem, nil) }

// limited returns a store over a new memory store with other capabilities.
func limited(change func(*store.Capabilities)) *faulty {
	return limitedOver(memory.New(memory.Options{}), change)
}

func limitedOver(mem *memory.Store, change func(*store.Capabilities)) *faulty {
	f := newFaulty(mem)
	f.Adjust = func(_ context.Context, c *store.Capabilities) error { change(c); return nil }
	return f
}

// crash makes every later call fail: the process is gone, as far as the store can
// tell.
func (p *process) crash() { p.faults.Decide(func(request) fault { return fault{Before: errDead} }) }

// hang makes every later call wait for its context.
func (p *process) hang() { p.faults.Decide(func(request) fault { return fault{Hang: true} }) }

// commitApplied commits, and loses the answer.
func commitApplied() fault { return fault{Name: "committed", After: errCut} }

// commitDropped rolls back, and loses the answer.
func commitDropped() fault { return fault{Name: "rolled back", Rollback: errCut, After: errCut} }

// commitRefused rolls back.
func commitRefused() fault { return fault{Name: "refused", Rollback: errCut} }

// commitNoted commits, and returns an error too.
func commitNoted() fault { return fault{Name: "committed with an error", Extra: errCut} }

// commitOpen answers Unknown while the transaction is still open.
func commitOpen() fault { return fault{Name: "open", Open: true} }

// eachFault runs test for each fault, in a bubble of its own.
func eachFault(t *testing.T, faults []fault, test func(t *testing.T, f fault)) {
	t.Helper()
	rows := map[string]fault{}
	for _, f := range faults {
		rows[f.Name] = f
	}
	eachInBubble(t, rows, test)
}

// failOn lets f happen to every call of the method.
func failOn(method string, f fault) func(request) fault {
	return func(r request) fault {
		if r.Method == method {
			return f
		}
		return fault{}
	}
}

// failFirst lets f happen to the first call of the method.
func failFirst(method string, f fault) func(request) fault {
	return func(r request) fault {
		if r.Method == method && r.MethodN == 1 {
			return f
		}
		return fault{}
	}
}

// failTo lets f happen to every change to the state.
func failTo(state store.State, f fault) func(request) fault {
	return func(r request) fault {
		if r.To() == state {
			return f
		}
		return fault{}
	}
}

// commits lets f happen to the first transaction.
func commits(f fault) func(request) fault { return failFirst("Atomic", f) }

// everyCommit lets f happen to every transaction.
func everyCommit(f fault) func(request) fault { return failOn("Atomic", f) }
