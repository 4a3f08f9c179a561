package semel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestRule05WrongOptionsNameTheField(t *testing.T) {
	t.Parallel()
	bad := semel.Define("op", semel.OperationOptions[string]{Lease: -1})
	tests := []struct {
		name, field string
		o           semel.Options
	}{
		{"negative lease", "Lease", semel.Options{Lease: -1}},
		{"negative heartbeat", "Heartbeat", semel.Options{Heartbeat: -1}},
		{"heartbeat as long as the default lease", "Heartbeat", semel.Options{Heartbeat: 30 * time.Second}},
		{"heartbeat longer than the lease", "Heartbeat", semel.Options{Lease: time.Second, Heartbeat: 2 * time.Second}},
		{"negative max run", "MaxRun", semel.Options{MaxRun: -1}},
		{"negative retention", "Retention", semel.Options{Retention: -1}},
		{"negative wait", "Wait", semel.Options{Wait: -1}},
		{"negative waiters", "MaxWaiters", semel.Options{MaxWaiters: -1}},
		{"negative record timeout", "RecordTimeout", semel.Options{RecordTimeout: -1}},
		{"nil operation", "Operations", semel.Options{Operations: []semel.Declared{nil}}},
		{"bad operation", "Lease", semel.Options{Operations: []semel.Declared{bad}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engine, err := semel.New(memory.New(memory.Options{}), tt.o)
			wantField(t, err, tt.field)
			if engine != nil {
				t.Error("New returned an engine beside the error")
			}
		})
	}
}

func TestRule05WrongDefinitionsNameTheField(t *testing.T) {
	t.Parallel()
	type options = semel.OperationOptions[string]
	many := make([]func(string) any, 256)
	tests := []struct {
		name, operation, field string
		o                      options
	}{
		{"no name", "", "Name", options{}},
		{"name with a space", "a b", "Name", options{}},
		{"name not of ASCII", "opération", "Name", options{}},
		{"name too long", strings.Repeat("x", store.MaxOperation+1), "Name", options{}},
		{"negative lease", "op", "Lease", options{Lease: -1}},
		{"negative heartbeat", "op", "Heartbeat", options{Heartbeat: -1}},
		{"heartbeat as long as the lease", "op", "Heartbeat", options{Lease: time.Second, Heartbeat: time.Second}},
		{"heartbeat without a lease", "op", "Heartbeat", options{Heartbeat: time.Second}},
		{"negative max run", "op", "MaxRun", options{MaxRun: -1}},
		{"negative retention", "op", "Retention", options{Retention: -1}},
		{"negative wait", "op", "Wait", options{Wait: -1}},
		{"negative skew", "op", "Skew", options{Skew: -1}},
		{"unknown OnError", "op", "OnError", options{OnError: 7}},
		{"heal without a probe", "op", "Policy", options{Policy: semel.Heal(nil)}},
		{"fence without raise", "op", "Policy", options{Policy: semel.Fenced(nil, finds("", false))}},
		{"fence without look", "op", "Policy", options{Policy: semel.Fenced(raises(nil), nil)}},
		{"too many fingerprints", "op", "Fingerprints", options{Fingerprints: many}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain(tt.operation, tt.o)
				_, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}})
				wantField(t, err, tt.field)
				wantRefusedEverywhere(t, op.Call(me, "k", "in"), tt.field)
			})
		})
	}
}

func TestRule05WrongCallsNameTheField(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{})
	tests := []struct {
		name, field string
		call        semel.Call
	}{
		{"no call", "Call", semel.Call{}},
		{"no scope", "Scope", op.Call(semel.Scope{}, "k", "in")},
		{"scope of nothing", "Scope", op.Call(semel.ScopeOf(), "k", "in")},
		{"empty part of a scope", "Scope", op.Call(semel.ScopeOf("tenant", ""), "k", "in")},
		{"scope too long", "Scope", op.Call(semel.ScopeOf(strings.Repeat("s", store.MaxScope)), "k", "in")},
		{"no key", "Key", op.Call(me, "", "in")},
		{"key too long", "Key", op.Call(me, strings.Repeat("k", store.MaxKey+1), "in")},
		{"input without a fingerprint", "Input", semel.Define("op", semel.OperationOptions[func()]{}).Call(me, "k", nil)},
		{"chosen field without a fingerprint", "Input", plain("op", semel.OperationOptions[string]{
			Fingerprints: []func(string) any{func(string) any { return make(chan int) }},
		}).Call(me, "k", "in")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { wantRefusedEverywhere(t, tt.call, tt.field) })
		})
	}
}

// wantRefusedEverywhere: every way in names the field, runs nothing, and asks
// the store for nothing.
func wantRefusedEverywhere(t *testing.T, c semel.Call, field string) {
	t.Helper()
	p, _ := solo(t, semel.Options{})
	p.faults.Decide(nil) // count from here
	wantField(t, do(t.Context(), p, c, never(t)).err, field)
	wantField(t, doTx(t.Context(), p, c, neverTx(t)).err, field)
	_, _, err := adapter.Begin(t.Context(), p, c)
	wantField(t, err, field)
	_, err = semel.EnqueueTx(t.Context(), p.Engine, nil, c, semel.EnqueueOptions{})
	wantField(t, err, field)
	if n := p.faults.Calls(); n != 0 {
		t.Errorf("the store was called %d times, want never", n)
	}
}

// TestRule05LimitsAreInclusive: what is just allowed works.
func TestRule05LimitsAreInclusive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		scope := semel.ScopeOf(strings.Repeat("s", store.MaxScope-len("1019:")))
		if n := len(scope.Bytes()); n != store.MaxScope {
			t.Fatalf("the scope has %d bytes, want %d", n, store.MaxScope)
		}
		call := plain(strings.Repeat("o", store.MaxOperation), semel.OperationOptions[string]{}).
			Call(scope, strings.Repeat("\x00", store.MaxKey), "in")
		do(t.Context(), p, call, returns("v")).want(t, "v", false)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestRule05PolicyOfTheOtherFunction: DoTx refuses a policy that speaks of effects
// elsewhere.
func TestRule05PolicyOfTheOtherFunction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		for _, pc := range policies() {
			if pc.name == "unset" || pc.name == "Atomic" {
				continue
			}
			call := plain("op", semel.OperationOptions[string]{Policy: pc.p}).Call(me, "k", "in")
			wantField(t, doTx(t.Context(), p, call, neverTx(t)).err, "Policy")
		}
	})
}
