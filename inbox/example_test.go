package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type order struct{ Item string }

// must ends an example that fails.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A message is handled in the transaction that writes its record. However often
// it is delivered, it has one effect.
func ExampleHandleTx() {
	records := memory.New(memory.Options{}) // sqlite.New(db, sqlite.Options{}), postgres.New(pool, …)
	shipping := must(inbox.New("ship_order", inbox.Options[order]{Group: "shipping"}))
	engine := must(semel.New(records, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{shipping.Operation()}}))
	m := inbox.Message[order]{Producer: "shop", ID: "order-7", Payload: order{Item: "a book"}}
	for range 3 { // the broker delivers the message three times
		r := inbox.HandleTx(context.Background(), shipping, engine, m, func(_ context.Context, tx *memory.Tx, o order) error {
			fmt.Println("ship", o.Item)
			return tx.Put("shipped/order-7", []byte(o.Item))
		})
		fmt.Println(r.Decision, "duplicate:", r.Duplicate)
	}
	// Output:
	// ship a book
	// Ack duplicate: false
	// Ack duplicate: true
	// Ack duplicate: true
}

// A message whose handler fails is redelivered, and is poison after MaxErrors
// errors. An operator who has removed the cause redrives it.
func ExampleHandleTx_poison() {
	shipping := must(inbox.New("ship_order", inbox.Options[order]{
		Group: "shipping",
		Retry: semel.Retry{MaxErrors: 2, Delay: func(int) time.Duration { return 0 }},
	}))
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{shipping.Operation()}}))
	ctx, mended := context.Background(), false
	deliver := func() inbox.Result {
		m := inbox.Message[order]{Producer: "shop", ID: "order-7", Payload: order{Item: "a piano"}}
		r := inbox.HandleTx(ctx, shipping, engine, m, func(context.Context, *memory.Tx, order) error {
			if !mended {
				return errors.New("too heavy")
			}
			return nil
		})
		fmt.Println(r.Decision, "poisoned:", r.Poisoned)
		return r
	}
	deliver()
	r := deliver()
	fmt.Println(r.Err)

	mended = true
	must(admin.Redrive(ctx, engine, admin.RedriveRequest{ID: r.ID, Actor: "ann", Reason: "we have a crane now"}))
	deliver()
	// Output:
	// Redeliver poisoned: false
	// Reject poisoned: true
	// exhausted: the last error: too heavy
	// Ack poisoned: false
}

// An effect outside the database needs a policy, which names what is promised
// when a consumer dies. With Keyed the receiver deduplicates by key.
func ExampleHandle() {
	charging := must(inbox.New("charge_order", inbox.Options[order]{
		Group: "billing", Mode: inbox.Leased, Policy: semel.Keyed(),
	}))
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{charging.Operation()}}))
	m := inbox.Message[order]{Producer: "shop", ID: "order-7", Payload: order{Item: "a book"}}
	r := inbox.Handle(context.Background(), charging, engine, m, func(ctx context.Context, o order) error {
		key, err := semel.ChildKey(ctx, "charge")
		if err != nil {
			return err
		}
		fmt.Println("charge for", o.Item, "with a key of", len(key), "characters")
		return nil
	})
	fmt.Println(r.Decision)
	// Output:
	// charge for a book with a key of 32 characters
	// Ack
}

// The reply of a handler is stored with the record and returned for each
// duplicate. It is published at least once, even if the process dies between
// the commit and the publishing.
func ExampleReplyTx() {
	shipping := must(inbox.New("ship_order", inbox.Options[order]{Group: "shipping"}))
	engine := must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))
	m := inbox.Message[order]{Producer: "shop", ID: "order-7", Payload: order{Item: "a book"}}
	parcels := 0
	for range 2 {
		parcel, r := inbox.ReplyTx(context.Background(), shipping, engine, m, func(context.Context, *memory.Tx, order) (string, error) {
			parcels++
			return fmt.Sprint("parcel ", parcels), nil
		})
		fmt.Println(parcel, r.Decision, r.Duplicate)
	}
	// Output:
	// parcel 1 Ack false
	// parcel 1 Ack true
}
