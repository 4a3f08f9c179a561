package semel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// existingState is what a caller may find under its key.
type existingState string

const (
	nothing   existingState = "nothing"
	pending   existingState = "Pending"
	live      existingState = "InProgress, lease running"
	expired   existingState = "InProgress, lease over"
	inDoubt   existingState = "InDoubt"
	succeeded existingState = "Succeeded"
	failed    existingState = "Failed"
)

func existingStates() map[string]existingState {
	return byName(func(s existingState) string { return string(s) }, nothing, pending, live, expired, inDoubt, succeeded, failed)
}

// eachExisting runs test for each of them, in a bubble of its own.
func eachExisting(t *testing.T, test func(t *testing.T, s existingState)) {
	t.Helper()
	eachInBubble(t, existingStates(), test)
}

// createExisting leaves a record in the state s under call, by a process of its
// own. The operation's lease must be the engine's.
func createExisting(t *testing.T, mem *memory.Store, call semel.Call, s existingState) {
	t.Helper()
	p := start(t, mem, semel.Options{})
	switch s {
	case nothing:
	case pending:
		do(t.Context(), p, call, fails(semel.NotCommitted(errBoom))).wantErr(t, errBoom)
	case succeeded:
		do(t.Context(), p, call, p.run(returns("done"))).want(t, "done", false)
	case failed:
		do(t.Context(), p, call, fails(semel.Final(errBoom))).wantErr(t)
	case live, expired, inDoubt:
		claimAndCrash(t, p, call)
		if s == expired {
			pass(time.Minute)
		}
		if s == inDoubt {
			setInDoubt(t, mem, call)
		}
	}
}

// claimAndCrash claims call and then crashes, as far as the store can tell.
func claimAndCrash(t *testing.T, p *process, call semel.Call) {
	t.Helper()
	a, out, err := adapter.Begin(t.Context(), p, call)
	if err != nil || out != nil {
		t.Fatalf("Begin = %v, %v, want an attempt", out, err)
	}
	p.crash()
	t.Cleanup(a.Abandon)
}

// setInDoubt makes the record of call InDoubt, as a sweeper would.
func setInDoubt(t *testing.T, mem *memory.Store, call semel.Call) {
	t.Helper()
	was := record(t, mem, call)
	to := was
	to.State, to.Owner, to.Due = store.InDoubt, was.Owner+1, 0
	c := store.Change{If: was.Token, To: to}
	answers, err := mem.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		t.Fatalf("Swap to InDoubt = %+v, %v", answers, err)
	}
}

// policyCase is a policy that Do takes, with what it does after a crash.
type policyCase struct {
	name  string
	p     semel.Policy
	again bool // runs again
	found bool // Heal finds evidence
}

func policies() map[string]policyCase {
	return byName(func(pc policyCase) string { return pc.name },
		policyCase{name: "unset"},
		policyCase{name: "Hold", p: semel.Hold()},
		policyCase{name: "Heal, nothing found", p: semel.Heal(finds("", false))},
		policyCase{name: "Heal, found", p: semel.Heal(finds("found", true)), found: true},
		policyCase{name: "Fenced", p: semel.Fenced(raises(nil), finds("", false)), again: true},
		policyCase{name: "Keyed", p: semel.Keyed(), again: true},
		policyCase{name: "AtLeastOnce", p: semel.AtLeastOnce(), again: true},
		policyCase{name: "Atomic", p: semel.Atomic(), again: true})
}

// eachPolicy runs test for each of them, in a bubble of its own.
func eachPolicy(t *testing.T, test func(t *testing.T, pc policyCase)) {
	t.Helper()
	eachInBubble(t, policies(), test)
}

// finds is a probe that finds v, or nothing.
func finds(v string, found bool) func(context.Context, semel.Scope, string) (any, bool, error) {
	return func(context.Context, semel.Scope, string) (any, bool, error) { return v, found, nil }
}

// raises is a fence that is raised with err.
func raises(err error) func(ctx context.Context, scope semel.Scope, key string, attempt uint32) error {
	return func(context.Context, semel.Scope, string, uint32) error { return err }
}

type (
	handler   = func(ctx context.Context) (string, error)
	txHandler = func(ctx context.Context, tx *memory.Tx) (string, error)
)

// returns is a handler that returns v.
func returns(v string) handler { return func(context.Context) (string, error) { return v, nil } }

// fails is a handler that returns err.
func fails(err error) handler { return func(context.Context) (string, error) { return "", err } }

// takes is a handler that returns "v" after d.
func takes(d time.Duration) handler {
	return func(context.Context) (string, error) { pass(d); return "v", nil }
}

// until is a handler that returns "v" once finish is closed.
func until(finish <-chan struct{}) handler {
	return func(context.Context) (string, error) { <-finish; return "v", nil }
}

// never is a handler that must not run.
func never(t *testing.T) handler {
	return func(context.Context) (string, error) {
		t.Error("the function ran, want it not to")
		return "ran", nil
	}
}

func neverTx(t *testing.T) txHandler {
	return func(ctx context.Context, _ *memory.Tx) (string, error) { return never(t)(ctx) }
}

// counted counts the runs of fn.
type counted struct {
	mu   sync.Mutex
	runs int
}

func (c *counted) of(fn handler) handler {
	return func(ctx context.Context) (string, error) {
		c.mu.Lock()
		c.runs++
		c.mu.Unlock()
		return fn(ctx)
	}
}

func (c *counted) want(t *testing.T, runs int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	check.Equal(t, c.runs, runs, "the function ran")
}

// puts is a transaction's function that leaves an effect called name and
// returns v.
func puts(name, v string) txHandler {
	return func(_ context.Context, tx *memory.Tx) (string, error) { return v, tx.Put(name, []byte("done")) }
}

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
	eachInBubble(t, byName(fault.String, faults...), test)
}

// failIf lets f happen to every call that matches.
func failIf(f fault, matches func(request) bool) func(request) fault {
	return func(r request) fault {
		if matches(r) {
			return f
		}
		return fault{}
	}
}

// failOn lets f happen to every call of the method.
func failOn(method string, f fault) func(request) fault {
	return failIf(f, func(r request) bool { return r.Method == method })
}

// failFirst lets f happen to the first call of the method.
func failFirst(method string, f fault) func(request) fault {
	return failIf(f, func(r request) bool { return r.Method == method && r.MethodN == 1 })
}

// failTo lets f happen to every change to the state.
func failTo(state store.State, f fault) func(request) fault {
	return failIf(f, func(r request) bool { return r.To() == state })
}

// commits lets f happen to the first transaction.
func commits(f fault) func(request) fault { return failFirst("Atomic", f) }

// everyCommit lets f happen to every transaction.
func everyCommit(f fault) func(request) fault { return failOn("Atomic", f) }
