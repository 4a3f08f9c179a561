package semelwatermill_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelwatermill"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// A router handles each order once, although the shop has sent one order twice,
// under two Watermill UUIDs and one ID of the shop.
func ExampleMiddlewareTx() {
	shipping, err := inbox.New("ship_order", inbox.Options[semel.Raw]{Group: "shipping"})
	if err != nil {
		panic(err)
	}
	records := memory.New(memory.Options{}) // sqlite.New(db, sqlite.Options{}), postgres.New(pool, …)
	engine, err := semel.New(records, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{shipping.Operation()}})
	if err != nil {
		panic(err)
	}
	pubsub := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		panic(err)
	}
	once, err := semelwatermill.MiddlewareTx(shipping, engine, semelwatermill.Options{
		Name:        semelwatermill.FromMetadata("producer", "order"),
		Poison:      pubsub,
		PoisonTopic: "orders.dead",
	})
	if err != nil {
		panic(err)
	}
	acknowledged := make(chan bool)
	router.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			produced, err := next(msg)
			select {
			case <-msg.Nacked(): // another delivery was in progress: the message comes again
			default:
				if err == nil {
					acknowledged <- true
				}
			}
			return produced, err
		}
	}, once)
	router.AddConsumerHandler("ship", "orders", pubsub, func(msg *message.Message) error {
		tx, ok := semel.TxOf(msg.Context(), engine)
		fmt.Println("ship", string(msg.Payload), "in a transaction:", ok)
		return tx.Put("shipped/"+msg.Metadata.Get("order"), msg.Payload)
	})

	for range 2 {
		msg := message.NewMessage(watermill.NewUUID(), message.Payload("a book"))
		msg.Metadata.Set("producer", "shop")
		msg.Metadata.Set("order", "order-7")
		if err := pubsub.Publish("orders", msg); err != nil {
			panic(err)
		}
	}
	ended := make(chan error)
	go func() { ended <- router.Run(context.Background()) }()
	<-acknowledged
	<-acknowledged
	fmt.Println("stopped:", router.Close(), <-ended, pubsub.Close())
	// Output:
	// ship a book in a transaction: true
	// stopped: <nil> <nil> <nil>
}
