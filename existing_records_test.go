package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
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

func existingStates() []existingState {
	return []existingState{nothing, pending, live, expired, inDoubt, succeeded, failed}
}

// eachExisting runs test for each of them, in a bubble of its own.
func eachExisting(t *testing.T, test func(t *testing.T, s existingState)) {
	t.Helper()
	rows := map[string]existingState{}
	for _, s := range existingStates() {
		rows[string(s)] = s
	}
	eachInBubble(t, rows, test)
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
	heal  bool
}

func policies() []policyCase {
	return []policyCase{
		{name: "unset"},
		{name: "Hold", p: semel.Hold()},
		{name: "Heal, nothing found", p: semel.Heal(finds("", false)), heal: true},
		{name: "Heal, found", p: semel.Heal(finds("found", true)), heal: true, found: true},
		{name: "Fenced", p: semel.Fenced(raises(nil), finds("", false)), again: true},
		{name: "Keyed", p: semel.Keyed(), again: true},
		{name: "AtLeastOnce", p: semel.AtLeastOnce(), again: true},
		{name: "Atomic", p: semel.Atomic(), again: true},
	}
}

// eachPolicy runs test for each of them, in a bubble of its own.
func eachPolicy(t *testing.T, test func(t *testing.T, pc policyCase)) {
	t.Helper()
	rows := map[string]policyCase{}
	for _, pc := range policies() {
		rows[pc.name] = pc
	}
	eachInBubble(t, rows, test)
}

// finds is a probe that finds v, or nothing.
func finds(v string, found bool) func(context.Context, semel.Scope, string) (any, bool, error) {
	return func(context.Context, semel.Scope, string) (any, bool, error) { return v, found, nil }
}

// raises is a fence that is raised with err.
func raises(err error) func(ctx context.Context, scope semel.Scope, key string, attempt uint32) error {
	return func(context.Context, semel.Scope, string, uint32) error { return err }
}
