package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// An error that is the operation's answer: it is stored, and the key has failed
// for ever.
func ExampleFinal() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{})
	call := pay.Call(semel.ScopeOf("user-7"), "key-1", payment{"rent", 90000})
	for range 2 {
		_, _, err := semel.Do(context.Background(), engine, call, func(context.Context) (receipt, error) {
			fmt.Println("paying")
			return receipt{}, semel.Final(&semel.Failure{Code: "no_funds", Message: "the account is empty", Details: json.RawMessage(`{"cents":0}`)})
		})
		var failure *semel.Failure
		if errors.As(err, &failure) {
			fmt.Printf("%s %s %v\n", failure.Code, failure.Details, semel.VerdictOf(err))
		}
	}
	// Output:
	// paying
	// no_funds {"cents":0} NotCommitted
	// no_funds {"cents":0} NotCommitted
}

// An error that proves that nothing happened: the same key may try again.
func ExampleNotCommitted() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{})
	call := pay.Call(semel.ScopeOf("user-7"), "key-1", payment{"rent", 90000})
	reachable := false
	for range 2 {
		got, _, err := semel.Do(context.Background(), engine, call, func(context.Context) (receipt, error) {
			if !reachable {
				return receipt{}, semel.NotCommitted(errors.New("connection refused"))
			}
			return receipt{Number: 1}, nil
		})
		fmt.Println(got, err)
		reachable = true
	}
	// Output:
	// {0} semel: pay did not happen and may be tried again with the same key: connection refused
	// {1} <nil>
}

// The domain's own tables are the evidence for an unfinished attempt.
func ExampleHeal() {
	payments := map[string]receipt{} // by key, unique
	probe := func(_ context.Context, _ semel.Scope, key string) (any, bool, error) {
		made, found := payments[key]
		return made, found, nil
	}
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{Policy: semel.Heal(probe)})
	run := func(key string, arrives bool) {
		call := pay.Call(semel.ScopeOf("user-7"), key, payment{"rent", 90000})
		got, _, err := semel.Do(context.Background(), engine, call, func(context.Context) (receipt, error) {
			if arrives {
				payments[key] = receipt{Number: 1}
			}
			return receipt{}, errors.New("connection lost")
		})
		fmt.Println(got, errors.Is(err, semel.ErrOutcomeUnknown))
	}
	run("key-1", true)
	run("key-2", false)
	// Output:
	// {1} false
	// {0} true
}

// The same key downstream in every attempt, so that a receiver that remembers
// keys does it once.
func ExampleChildKey() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{Policy: semel.Keyed()})
	call := pay.Call(semel.ScopeOf("user-7"), "key-1", payment{"rent", 90000})
	charged := map[string]bool{}
	answers := false
	for range 2 {
		got, _, err := semel.Do(context.Background(), engine, call, func(ctx context.Context) (receipt, error) {
			key, err := semel.ChildKey(ctx, "charge")
			if err != nil {
				return receipt{}, err
			}
			charged[key] = true
			if !answers {
				return receipt{}, errors.New("connection lost")
			}
			return receipt{Number: 1}, nil
		})
		fmt.Println(got, errors.Is(err, semel.ErrOutcomeUnknown), "charged:", len(charged))
		answers = true
	}
	// Output:
	// {0} true charged: 1
	// {1} false charged: 1
}

// What the operation knows of its receiver's errors, said once.
func ExampleOperationOptions_classify() {
	errRejected := errors.New("rejected")
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{
		Classify: func(err error) store.Verdict {
			if errors.Is(err, errRejected) {
				return store.NotCommitted
			}
			return store.Unknown
		},
		OnError: semel.Keep,
	})
	for key, cause := range []error{errRejected, errors.New("timeout")} {
		call := pay.Call(semel.ScopeOf("user-7"), fmt.Sprint(key), payment{"rent", 90000})
		_, _, err := semel.Do(context.Background(), engine, call, func(context.Context) (receipt, error) {
			return receipt{}, fmt.Errorf("pay: %w", cause)
		})
		record, _, _ := admin.Get(context.Background(), engine, "pay", call.Scope(), call.Key())
		fmt.Println(semel.VerdictOf(err), record.State)
	}
	// Output:
	// NotCommitted Failed
	// Unknown InDoubt
}
