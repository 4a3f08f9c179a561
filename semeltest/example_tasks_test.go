package semeltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

var sendReceipt = semel.Define("send_receipt", semel.OperationOptions[string]{
	Policy: semel.AtLeastOnce(),
	Retry:  &semel.Retry{Delay: func(int) time.Duration { return time.Minute }},
})

// order is the program under test: it stores an order, and enqueues the task that sends the receipt
// one hour later, in one transaction.
func order(ctx context.Context, engine *semel.Engine[*memory.Tx], key, mail string) error {
	call := semel.Define("order", semel.OperationOptions[string]{}).Call(semel.Shared(), key, mail)
	_, _, err := semel.DoTx(ctx, engine, call, func(ctx context.Context, tx *memory.Tx) (bool, error) {
		receipt := sendReceipt.Call(semel.Shared(), key, mail)
		return semel.EnqueueTx(ctx, engine, tx, receipt, semel.EnqueueOptions{Delay: time.Hour})
	})
	return err
}

// testOrder is a test of the program: the receipt is enqueued once, and sent again after an
// error.
func testOrder(t *testing.T) {
	s := memory.New(memory.Options{})
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{sendReceipt}})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := task.New(engine, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var tried int
	if err := task.Handle(worker, sendReceipt, func(context.Context, string) (string, error) {
		if tried++; tried == 1 {
			return "", errors.New("the mail server is down")
		}
		return "sent", nil
	}, task.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the request and its retry
		if err := order(t.Context(), engine, "order 7", "ann@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	semeltest.RequireEnqueued(t, engine, sendReceipt.Call(semel.Shared(), "order 7", "ann@example.com"))

	semeltest.Advance(t, s, time.Hour)
	semeltest.RunDue(t, worker) // fails
	semeltest.Advance(t, s, time.Minute)
	semeltest.RunDue(t, worker)
	if tried != 2 {
		t.Errorf("tried %d times, want 2", tried)
	}
}

// ExampleRunDue has a test that would be TestOrder in a file of your own.
func ExampleRunDue() {
	_ = testOrder
	// Output:
}
