package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

type greeting struct{ Member string }

// require ends an example that fails.
func require(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	require(err)
	return v
}

// A program enqueues a task in the transaction that makes the task necessary. A
// worker runs it later.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	welcome := semel.Define("welcome", semel.OperationOptions[greeting]{
		Policy: semel.Keyed(), // the mailer sends one message per key
		Retry:  &semel.Retry{},
	})
	db := memory.New(memory.Options{})
	engine := must(semel.New(db, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{welcome}}))
	worker := must(task.New(engine, task.Options{}))
	require(task.Handle(worker, welcome, func(ctx context.Context, g greeting) (string, error) {
		defer stop() // one mail is enough for the example
		key, err := semel.ChildKey(ctx, "mail")
		if err != nil {
			return "", err
		}
		fmt.Println("mail to", g.Member, "under a key of", len(key), "digits")
		return "sent", nil
	}, task.HandlerOptions{}))

	join := semel.Define("join", semel.OperationOptions[string]{})
	_, _, err := semel.DoTx(ctx, engine, join.Call(semel.ScopeOf("climbers"), "ann", "ann"),
		func(ctx context.Context, tx *memory.Tx) (string, error) {
			if err := tx.Put("members/ann", nil); err != nil {
				return "", err
			}
			call := welcome.Call(semel.ScopeOf("climbers"), "ann", greeting{Member: "ann"})
			_, err := semel.EnqueueTx(ctx, engine, tx, call, semel.EnqueueOptions{})
			return "joined", err
		})
	fmt.Println("joined", err)

	fmt.Println("worked", worker.Run(ctx))
	// Output:
	// joined <nil>
	// mail to ann under a key of 32 digits
	// worked <nil>
}

// The effect is in the record's own database. An attempt that fails leaves no
// effect, and an attempt whose lease was taken over cannot commit.
func ExampleHandleTx() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	welcome := semel.Define("welcome", semel.OperationOptions[greeting]{
		Policy: semel.Atomic(),
		Retry:  &semel.Retry{Delay: func(int) time.Duration { return 0 }},
	})
	db := memory.New(memory.Options{})
	engine := must(semel.New(db, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{welcome}}))
	worker := must(task.New(engine, task.Options{Poll: time.Millisecond}))
	require(task.HandleTx(worker, engine, welcome, func(ctx context.Context, tx *memory.Tx, g greeting) (string, error) {
		attempt, _ := semel.AttemptOf(ctx)
		text := fmt.Sprintf("welcome, %s, says attempt %d", g.Member, attempt.Number())
		if err := tx.Put("posts/1", []byte(text)); err != nil {
			return "", err
		}
		if attempt.Number() == 1 {
			return "", errors.New("the power is gone")
		}
		defer stop()
		return "posts/1", nil
	}, task.HandlerOptions{}))
	call := welcome.Call(semel.ScopeOf("climbers"), "ann", greeting{Member: "ann"})
	must(semel.Enqueue(ctx, engine, call, semel.EnqueueOptions{}))
	fmt.Println("worked", worker.Run(ctx))
	post, _ := db.Value("posts/1")
	fmt.Printf("%s\n", post)
	// Output:
	// worked <nil>
	// welcome, ann, says attempt 2
}

// Two processes have the same schedule. Each tick is one task, in whichever
// process it was enqueued.
func ExamplePeriodic() {
	report := semel.Define("report", semel.OperationOptions[time.Time]{Policy: semel.Atomic(), Retry: &semel.Retry{}})
	db := memory.New(memory.Options{})
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	for _, process := range []string{"first", "second"} {
		engine := must(semel.New(db, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{report}}))
		nightly := must(task.NewPeriodic(engine, task.PeriodicOptions[time.Time]{
			Name:      "nightly",
			Schedule:  task.Every(24 * time.Hour), // or a schedule of robfig/cron
			Operation: report,
			Scope:     semel.Shared(),
			Input:     func(tick time.Time) time.Time { return tick },
		}))
		// Run does this at each tick.
		added, err := nightly.Tick(context.Background(), midnight.Add(24*time.Hour))
		fmt.Println(process, added, err)
	}
	// Output:
	// first true <nil>
	// second false <nil>
}

// A task that has failed for good is a dead letter. Its record keeps the
// history of its attempts, and an operator may redrive it.
func ExampleWorker_deadLetter() {
	charge := semel.Define("charge", semel.OperationOptions[int]{
		Policy: semel.Keyed(),
		Retry:  &semel.Retry{MaxErrors: 2, Delay: func(int) time.Duration { return 0 }},
	})
	db := memory.New(memory.Options{})
	engine := must(semel.New(db, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{charge}}))
	worker := must(task.New(engine, task.Options{Poll: time.Millisecond}))
	broken, stop := true, func() {}
	require(task.Handle(worker, charge, func(ctx context.Context, cents int) (string, error) {
		attempt, _ := semel.AttemptOf(ctx)
		if broken {
			if attempt.Number() == 2 {
				stop()
			}
			return "", semel.NotCommitted(errors.New("the bank is closed")) // the bank refused, so nothing was charged
		}
		stop()
		return fmt.Sprintf("charged %d", cents), nil
	}, task.HandlerOptions{}))
	work := func() error {
		ctx, cancel := context.WithCancel(context.Background())
		stop = cancel
		return worker.Run(ctx)
	}
	ctx := context.Background()
	must(semel.Enqueue(ctx, engine, charge.Call(semel.Shared(), "bill-7", 1000), semel.EnqueueOptions{}))
	require(work())

	letters := must(admin.List(ctx, engine, store.Query{State: store.Failed, Operation: "charge", Limit: 10}))
	failure := (&adapter.Outcome{Record: letters[0]}).Failure()
	fmt.Println(failure)
	var history admin.Progress
	_ = json.Unmarshal(failure.Details, &history)
	for _, try := range history.Tries {
		fmt.Println(try.Attempt, try.Kind, try.Error)
	}

	broken = false
	_, err := admin.Redrive(ctx, engine, admin.RedriveRequest{ID: letters[0].ID, Actor: "ann", Reason: "the bank is open"})
	fmt.Println("redriven", err)
	require(work())
	record, _, err := admin.Get(ctx, engine, "charge", semel.Shared(), "bill-7")
	fmt.Println(record.State, err)
	// Output:
	// exhausted: the last error: the bank is closed
	// 1 error the bank is closed
	// 2 error the bank is closed
	// redriven <nil>
	// Succeeded <nil>
}
