// Package calls uses transactions over a store that has none, or that has others. None of its marked
// lines compiles.
package calls

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

type tx struct{}

func calls(ctx context.Context, s store.Store, e semel.Runner, w *task.Worker, op *semel.Operation[string], in *inbox.Inbox[string]) {
	c := op.Call(semel.Shared(), "key", "input")
	fn := func(context.Context, tx) (string, error) { return "", nil }
	task1 := func(context.Context, tx, string) (string, error) { return "", nil }
	message := func(context.Context, tx, string) error { return nil }

	_, _ = semel.New[tx](s, semel.Options{})                              // no
	_, _, _ = semel.DoTx(ctx, e, c, fn)                                   // no
	_, _ = semel.InTx(ctx, e, fn)                                         // no
	_, _ = semel.TxOf[tx](ctx, e)                                         // no
	_, _ = semel.EnqueueTx(ctx, e, tx{}, c, semel.EnqueueOptions{})       // no
	_ = task.HandleTx(w, e, op, task1, task.HandlerOptions{})             // no
	_ = inbox.HandleTx(ctx, in, e, inbox.Message[string]{}, message)      // no
	_, _ = semelhttp.Atomic[tx](e, nil, semelhttp.Options{})              // no
	_, _, _ = semel.Do(ctx, e, c, func(context.Context) (string, error) { // this one compiles
		return "", nil
	})
}

func ofAnotherStore(ctx context.Context, e *semel.Engine[*memory.Tx], c semel.Call) {
	_, _, _ = semel.DoTx(ctx, e, c, func(context.Context, *memory.Tx) (string, error) { return "", nil }) // this one compiles
	_, _, _ = semel.DoTx(ctx, e, c, func(context.Context, *sql.Tx) (string, error) { return "", nil })    // no
}
