package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 5: lease, max run, heartbeat, retention and wait are separate settings
// with defaults.

// settings is what a process was seen to live by.
type settings struct {
	Lease, Heartbeat, Retention, Wait time.Duration
	MaxRun                            time.Duration // 0: none within a day
}

// observe runs keys of the operation and measures its settings.
func observe(t *testing.T, o semel.Options, oo semel.OperationOptions[string]) settings {
	t.Helper()
	mem := memory.New(memory.Options{})
	p, other := start(t, mem, o), start(t, mem, o)
	op := plain("op", oo)
	call := op.Call(me, "k", "in")
	var got settings
	var beat time.Time
	p.faults.Decide(func(r request) fault {
		if r.MethodN == 2 {
			beat = time.Now()
		}
		return fault{}
	})
	do(t.Context(), p, call, func(ctx context.Context) (string, error) {
		began := time.Now()
		got.Lease = record(t, mem, call).Due
		do(t.Context(), other, call, never(t)).wantErr(t, semel.ErrInProgress)
		got.Wait = time.Since(began)
		select {
		case <-ctx.Done():
			got.MaxRun = time.Since(began)
		case <-time.After(24 * time.Hour):
		}
		got.Heartbeat = beat.Sub(began)
		return "v", nil
	})
	got.Retention = record(t, mem, call).Expire
	return got
}

func TestRule05SettingsAreSeparate(t *testing.T) {
	type (
		options   = semel.Options
		operation = semel.OperationOptions[string]
	)
	base := settings{Lease: 30 * time.Second, Heartbeat: 10 * time.Second, Retention: 24 * time.Hour}
	with := func(change func(*settings)) settings { s := base; change(&s); return s }
	type row struct {
		o    options
		oo   operation
		want settings
	}
	tests := map[string]row{
		"defaults":                 {want: base},
		"lease of the engine":      {o: options{Lease: time.Minute}, want: with(func(s *settings) { s.Lease, s.Heartbeat = time.Minute, 20*time.Second })},
		"lease of the operation":   {oo: operation{Lease: time.Minute}, want: with(func(s *settings) { s.Lease, s.Heartbeat = time.Minute, 20*time.Second })},
		"operation before engine":  {o: options{Lease: time.Hour, Heartbeat: time.Minute}, oo: operation{Lease: time.Minute}, want: with(func(s *settings) { s.Lease, s.Heartbeat = time.Minute, 20*time.Second })},
		"heartbeat of the engine":  {o: options{Heartbeat: 3 * time.Second}, want: with(func(s *settings) { s.Heartbeat = 3 * time.Second })},
		"heartbeat of operation":   {oo: operation{Lease: 30 * time.Second, Heartbeat: 3 * time.Second}, want: with(func(s *settings) { s.Heartbeat = 3 * time.Second })},
		"retention of the engine":  {o: options{Retention: time.Hour}, want: with(func(s *settings) { s.Retention = time.Hour })},
		"retention of operation":   {o: options{Retention: time.Hour}, oo: operation{Retention: 7 * time.Hour}, want: with(func(s *settings) { s.Retention = 7 * time.Hour })},
		"wait of the engine":       {o: options{Wait: 4 * time.Second}, want: with(func(s *settings) { s.Wait = 4 * time.Second })},
		"wait of the operation":    {o: options{Wait: time.Hour}, oo: operation{Wait: 4 * time.Second}, want: with(func(s *settings) { s.Wait = 4 * time.Second })},
		"max run of the engine":    {o: options{MaxRun: 45 * time.Second}, want: with(func(s *settings) { s.MaxRun = 45 * time.Second })},
		"max run of the operation": {o: options{MaxRun: time.Hour}, oo: operation{MaxRun: 45 * time.Second}, want: with(func(s *settings) { s.MaxRun = 45 * time.Second })},
		"max run below the lease":  {o: options{MaxRun: 15 * time.Second}, want: with(func(s *settings) { s.Lease, s.MaxRun = 15*time.Second, 15*time.Second })},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		check.Equal(t, observe(t, tt.o, tt.oo), tt.want, "lived by")
	})
}

// TestRule05RetentionCountsFromTheOutcome, not from the claim.
func TestRule05RetentionCountsFromTheOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloWith(t, semel.Options{Retention: time.Hour}, semel.OperationOptions[string]{})
		do(t.Context(), p, call, func(context.Context) (string, error) {
			pass(10 * time.Hour)
			return "v", nil
		}).want(t, "v", false)
		if r := record(t, p.mem, call); r.Expire != time.Hour || r.Age != 10*time.Hour {
			t.Errorf("aged %v it expires in %v, want an hour from now", r.Age, r.Expire)
		}
	})
}

// TestRule05MaxRunRefusesTheHeartbeat: the lease ends with max run, the context
// says so, and another caller may then take over.
func TestRule05MaxRunRefusesTheHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const most = 100 * time.Second
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.Keyed(), MaxRun: most})
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			pass(most - 1)
			do(t.Context(), other, call, never(t)).wantErr(t, semel.ErrInProgress)
			v, err := wait(ctx)
			do(t.Context(), other, call, returns("winner")).want(t, "winner", false)
			return v, err
		}).want(t, "winner", true)
		check.Equal(t, took, most, "the context ended after")
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 2, "attempt: succeeded")
	})
}

// TestRule05MaxRunOfATransaction: inline, and in a store that a transaction has to itself, there
// is no lease, but the context ends.
func TestRule05MaxRunOfATransaction(t *testing.T) {
	eachPair(t, txModes(), map[string]store.Exclusion{
		"excludes those of its record": store.ExcludesRecord, "excludes all": store.ExcludesAll,
	}, func(t *testing.T, s txMode, excludes store.Exclusion) {
		p := startOn(t, limited(func(c *store.Capabilities) { c.Exclusion = excludes }), semel.Options{MaxRun: time.Minute})
		call := plain("op", s.o).Call(me, "k", "in")
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		a := s.ask(t.Context(), p, call, func(ctx context.Context, _ *memory.Tx) (string, error) {
			_, _ = wait(ctx)
			return "", context.Cause(ctx)
		})
		a.wantErr(t, semel.ErrLeaseLost)
		check.Equal(t, took, time.Minute, "the context ended after")
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}

// wantField checks that err is ErrInvalid and names the field.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	wrong, ok := errtype.Find[*semel.FieldError](err)
	if !ok || wrong.Field != field || !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid that names %q", err, field)
	}
}

func TestRule05WrongOptionsNameTheField(t *testing.T) {
	bad := semel.Define("op", semel.OperationOptions[string]{Lease: -1})
	type row struct {
		field string
		o     semel.Options
	}
	eachInBubble(t, map[string]row{
		"negative lease":                         {"Lease", semel.Options{Lease: -1}},
		"negative heartbeat":                     {"Heartbeat", semel.Options{Heartbeat: -1}},
		"heartbeat as long as the default lease": {"Heartbeat", semel.Options{Heartbeat: 30 * time.Second}},
		"heartbeat longer than the lease":        {"Heartbeat", semel.Options{Lease: time.Second, Heartbeat: 2 * time.Second}},
		"negative max run":                       {"MaxRun", semel.Options{MaxRun: -1}},
		"negative retention":                     {"Retention", semel.Options{Retention: -1}},
		"negative wait":                          {"Wait", semel.Options{Wait: -1}},
		"negative waiters":                       {"MaxWaiters", semel.Options{MaxWaiters: -1}},
		"negative record timeout":                {"RecordTimeout", semel.Options{RecordTimeout: -1}},
		"nil operation":                          {"Operations", semel.Options{Operations: []semel.Declared{nil}}},
		"bad operation":                          {"Lease", semel.Options{Operations: []semel.Declared{bad}}},
	}, func(t *testing.T, tt row) {
		engine, err := semel.New(memory.New(memory.Options{}), tt.o)
		wantField(t, err, tt.field)
		if engine != nil {
			t.Error("New returned an engine beside the error")
		}
	})
}

func TestRule05WrongDefinitionsNameTheField(t *testing.T) {
	type options = semel.OperationOptions[string]
	many := make([]func(string) any, 256)
	type row struct {
		operation, field string
		o                options
	}
	eachInBubble(t, map[string]row{
		"no name":                        {"", "Name", options{}},
		"name with a space":              {"a b", "Name", options{}},
		"name not of ASCII":              {"opération", "Name", options{}},
		"name too long":                  {strings.Repeat("x", store.MaxOperation+1), "Name", options{}},
		"negative lease":                 {"op", "Lease", options{Lease: -1}},
		"negative heartbeat":             {"op", "Heartbeat", options{Heartbeat: -1}},
		"heartbeat as long as the lease": {"op", "Heartbeat", options{Lease: time.Second, Heartbeat: time.Second}},
		"heartbeat without a lease":      {"op", "Heartbeat", options{Heartbeat: time.Second}},
		"negative max run":               {"op", "MaxRun", options{MaxRun: -1}},
		"negative retention":             {"op", "Retention", options{Retention: -1}},
		"negative wait":                  {"op", "Wait", options{Wait: -1}},
		"negative skew":                  {"op", "Skew", options{Skew: -1}},
		"unknown OnError":                {"op", "OnError", options{OnError: 7}},
		"heal without a probe":           {"op", "Policy", options{Policy: semel.Heal(nil)}},
		"fence without raise":            {"op", "Policy", options{Policy: semel.Fenced(nil, finds("", false))}},
		"fence without look":             {"op", "Policy", options{Policy: semel.Fenced(raises(nil), nil)}},
		"too many fingerprints":          {"op", "Fingerprints", options{Fingerprints: many}},
		"negative errors":                {"op", "Retry.MaxErrors", options{Retry: &semel.Retry{MaxErrors: -1}}},
		"negative crashes":               {"op", "Retry.MaxCrashes", options{Retry: &semel.Retry{MaxCrashes: -1}}},
		"kept and retried":               {"op", "Retry", options{Retry: &semel.Retry{}, OnError: semel.Keep}},
		"optimistic, leased":             {"op", "Optimistic", options{Optimistic: true, Policy: semel.Atomic(), Lease: time.Second}},
		"optimistic, Hold":               {"op", "Optimistic", options{Optimistic: true, Policy: semel.Hold()}},
	}, func(t *testing.T, tt row) {
		op := plain(tt.operation, tt.o)
		p, mem := solo(t, semel.Options{})
		wantField(t, check.Err(semel.New(mem, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}})), tt.field)
		wantField(t, check.Err(adapter.Dequeue(t.Context(), p, op, 1)), tt.field)
		wantRefusedEverywhere(t, op.Call(me, "k", "in"), tt.field)
	})
}

func TestRule05WrongCallsNameTheField(t *testing.T) {
	op := plain("op", semel.OperationOptions[string]{})
	type row struct {
		field string
		call  semel.Call
	}
	eachInBubble(t, map[string]row{
		"no call":                     {"Call", semel.Call{}},
		"no scope":                    {"Scope", op.Call(semel.Scope{}, "k", "in")},
		"scope of nothing":            {"Scope", op.Call(semel.ScopeOf(), "k", "in")},
		"empty part of a scope":       {"Scope", op.Call(semel.ScopeOf("tenant", ""), "k", "in")},
		"scope too long":              {"Scope", op.Call(semel.ScopeOf(strings.Repeat("s", store.MaxScope)), "k", "in")},
		"no key":                      {"Key", op.Call(me, "", "in")},
		"key too long":                {"Key", op.Call(me, strings.Repeat("k", store.MaxKey+1), "in")},
		"input without a fingerprint": {"Input", semel.Define("op", semel.OperationOptions[func()]{}).Call(me, "k", nil)},
		"chosen field without a fingerprint": {"Input", plain("op", semel.OperationOptions[string]{
			Fingerprints: []func(string) any{func(string) any { return make(chan int) }},
		}).Call(me, "k", "in")},
	}, func(t *testing.T, tt row) { wantRefusedEverywhere(t, tt.call, tt.field) })
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
	wantField(t, check.Err(semel.EnqueueTx(t.Context(), p.Engine, nil, c, semel.EnqueueOptions{})), field)
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
