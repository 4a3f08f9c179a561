package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type payment struct {
	Account string
	Cents   int
}

type receipt struct{ Number int }

// An effect outside of the record's database: what happens after a crash is the
// operation's policy, here the safest.
func ExampleDo() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{Policy: semel.Hold()})
	call := pay.Call(semel.ScopeOf("user-7"), "a-key-per-intent", payment{"rent", 90000})
	for range 3 {
		got, replayed, err := semel.Do(context.Background(), engine, call, func(context.Context) (receipt, error) {
			fmt.Println("paying")
			return receipt{Number: 1}, nil
		})
		fmt.Println(got, replayed, err)
	}
	// Output:
	// paying
	// {1} false <nil>
	// {1} true <nil>
	// {1} true <nil>
}

// An effect in the record's own database: effect and outcome share one
// transaction.
func ExampleDoTx() {
	db := memory.New(memory.Options{})
	engine, err := semel.New(db, semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	createGroup := semel.Define("create_group", semel.OperationOptions[string]{})
	call := createGroup.Call(semel.ScopeOf("user-7"), "key-1", "climbers")
	insert := func(_ context.Context, tx *memory.Tx) (receipt, error) {
		return receipt{Number: 42}, tx.Put("groups/42", []byte("climbers"))
	}
	for range 2 {
		got, replayed, err := semel.DoTx(context.Background(), engine, call, insert)
		fmt.Println(got, replayed, err)
	}
	name, _ := db.Value("groups/42")
	fmt.Printf("%s\n", name)
	// Output:
	// {42} false <nil>
	// {42} true <nil>
	// climbers
}

// Statements that are known beforehand, with the record in one round trip; with
// PostgreSQL they are a *pgx.Batch.
func ExampleDoBatch() {
	db := memory.New(memory.Options{})
	engine, err := semel.New(db, semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	createGroup := semel.Define("create_group", semel.OperationOptions[string]{})
	call := createGroup.Call(semel.ScopeOf("user-7"), "key-1", "climbers")
	statements := func(context.Context) (receipt, memory.Batch, error) {
		return receipt{Number: 42}, memory.Batch{
			func(tx *memory.Tx) error { return tx.Put("groups/42", []byte("climbers")) },
			func(tx *memory.Tx) error { return tx.Put("members/42/7", nil) },
		}, nil
	}
	for range 2 {
		got, replayed, err := semel.DoBatch(context.Background(), engine, call, statements)
		fmt.Println(got, replayed, err)
	}
	// Output:
	// {42} false <nil>
	// {42} true <nil>
}

// The same key for another request is refused: it needs a key of its own.
func ExampleDoTx_mismatch() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	createGroup := semel.Define("create_group", semel.OperationOptions[string]{})
	for _, name := range []string{"climbers", "divers"} {
		call := createGroup.Call(semel.ScopeOf("user-7"), "key-1", name)
		_, _, err := semel.DoTx(context.Background(), engine, call, func(context.Context, *memory.Tx) (string, error) { return name, nil })
		fmt.Println(errors.Is(err, semel.ErrMismatch), err)
	}
	// Output:
	// false <nil>
	// true semel: key was used for another request
}

// For adapters that cannot pass their work as a function.
func ExampleBegin() {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	op := semel.Define("handle", semel.OperationOptions[string]{})
	handle := func(ctx context.Context, body string) (string, error) {
		attempt, outcome, err := semel.Begin(ctx, engine, op.Call(semel.Shared(), "message-1", body))
		if err != nil {
			return "", err
		}
		if attempt != nil {
			defer attempt.Abandon() // when the work below panics
			fmt.Println("working, attempt", attempt.Number())
			if outcome, err = attempt.End("done", nil); err != nil {
				return "", err
			}
		}
		var answer string
		err = outcome.Decode(&answer)
		return answer, err
	}
	for range 2 {
		fmt.Println(handle(context.Background(), "body"))
	}
	// Output:
	// working, attempt 1
	// done <nil>
	// done <nil>
}

// Work before the transaction, under a committed claim; then effect and outcome
// as one.
func ExampleInTx() {
	db := memory.New(memory.Options{})
	engine, err := semel.New(db, semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	convert := semel.Define("convert", semel.OperationOptions[string]{Policy: semel.Atomic()})
	call := convert.Call(semel.ScopeOf("user-7"), "key-1", "picture.png")
	run := func(ctx context.Context) (string, error) {
		thumbnail := "thumbnail of picture.png" // takes long, holds no transaction
		return semel.InTx(ctx, engine, func(_ context.Context, tx *memory.Tx) (string, error) {
			return "stored", tx.Put("thumbnails/1", []byte(thumbnail))
		})
	}
	for range 2 {
		fmt.Println(semel.Do(context.Background(), engine, call, run))
	}
	thumbnail, _ := db.Value("thumbnails/1")
	fmt.Printf("%s\n", thumbnail)
	// Output:
	// stored false <nil>
	// stored true <nil>
	// thumbnail of picture.png
}

// Recorded in the caller's own transaction, to be run by a direct call or by a
// worker.
func ExampleEnqueueTx() {
	ctx := context.Background()
	db := memory.New(memory.Options{})
	engine, err := semel.New(db, semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	welcome := semel.Define("welcome", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
	call := welcome.Call(semel.Shared(), "user-7", "ann@example.com")
	_, err = db.Atomic(ctx, store.ID{}, false, func(ctx context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
		if err := tx.Put("users/7", []byte("ann")); err != nil {
			return nil, err
		}
		for range 2 {
			fmt.Println(semel.EnqueueTx(ctx, engine, tx, call, semel.EnqueueOptions{}))
		}
		return nil, nil
	})
	fmt.Println(err)
	fmt.Println(semel.Do(ctx, engine, call, func(context.Context) (string, error) { return "sent", nil }))
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// sent false <nil>
}

// The effect is unknown, so an operator must resolve the key.
func ExampleCore_Resolve() {
	ctx := context.Background()
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := semel.Define("pay", semel.OperationOptions[payment]{Policy: semel.Hold()})
	call := pay.Call(semel.ScopeOf("user-7"), "key-1", payment{"rent", 90000})
	timeout := func(context.Context) (receipt, error) { return receipt{}, errors.New("the bank did not answer") }

	_, _, err = semel.Do(ctx, engine, call, timeout)
	fmt.Println(errors.Is(err, semel.ErrOutcomeUnknown), semel.VerdictOf(err))
	_, _, err = semel.Do(ctx, engine, call, timeout)
	fmt.Println(errors.Is(err, semel.ErrInDoubt))

	_, err = engine.Resolve(ctx, semel.Resolution{
		ID: call.ID(), To: store.Succeeded, Result: receipt{Number: 1},
		Actor: "ann", Reason: "it is on the bank's statement",
	})
	fmt.Println(err)
	fmt.Println(semel.Do(ctx, engine, call, timeout))
	notes, err := engine.Notes(ctx, call.ID())
	fmt.Println(notes[0].Actor, notes[0].From.State, notes[0].To.State, err)
	// Output:
	// true Unknown
	// true
	// <nil>
	// {1} true <nil>
	// ann InDoubt Succeeded <nil>
}

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
		failure, _ := errors.AsType[*semel.Failure](err)
		fmt.Printf("%s %s %v\n", failure.Code, failure.Details, semel.VerdictOf(err))
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
		record, _, _ := engine.Get(context.Background(), "pay", call.Scope(), call.Key())
		fmt.Println(semel.VerdictOf(err), record.State)
	}
	// Output:
	// NotCommitted Failed
	// Unknown InDoubt
}
