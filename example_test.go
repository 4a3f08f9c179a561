package semel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
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
		attempt, outcome, err := adapter.Begin(ctx, engine, op.Call(semel.Shared(), "message-1", body))
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
func Example_resolve() {
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

	_, err = admin.Resolve(ctx, engine, admin.Resolution{
		ID: call.ID(), To: store.Succeeded, Result: receipt{Number: 1},
		Actor: "ann", Reason: "it is on the bank's statement",
	})
	fmt.Println(err)
	fmt.Println(semel.Do(ctx, engine, call, timeout))
	notes, err := admin.Notes(ctx, engine, call.ID())
	fmt.Println(notes[0].Actor, notes[0].From.State, notes[0].To.State, err)
	// Output:
	// true Unknown
	// true
	// <nil>
	// {1} true <nil>
	// ann InDoubt Succeeded <nil>
}
