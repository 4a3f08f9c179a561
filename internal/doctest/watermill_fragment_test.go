package doctest_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/semelwatermill"
)

// routing contains the fragment of docs/messages.md.
func routing(router *message.Router, shipping *inbox.Inbox[semel.Raw], engine *semel.Engine[*sql.Tx], publisher message.Publisher,
	subscriber message.Subscriber, ship func(context.Context, *sql.Tx, []byte) error,
) {
	once := must(semelwatermill.MiddlewareTx(shipping, engine, semelwatermill.Options{
		Name:        semelwatermill.FromMetadata("producer", "order"),
		Poison:      publisher,
		PoisonTopic: "orders.dead",
	}))
	router.AddMiddleware(once)
	router.AddConsumerHandler("ship", "orders", subscriber, func(msg *message.Message) error {
		tx, _ := semel.TxOf(msg.Context(), engine) // the transaction of the message's record
		return ship(msg.Context(), tx, msg.Payload)
	})
}

func TestWatermillFragmentOfDocsRuns(t *testing.T) {
	shipping := must(inbox.New("ship_order", inbox.Options[semel.Raw]{Group: "shipping"}))
	_, engine := onSQLite(t, shipping.Operation())
	pubsub := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router := must(message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}))
	shipped := make(chan string, 3)
	routing(router, shipping, engine, pubsub, pubsub, func(_ context.Context, tx *sql.Tx, order []byte) error {
		if tx == nil {
			t.Error("the handler has no transaction")
		}
		shipped <- string(order)
		return nil
	})
	for _, order := range []string{"7", "7", "8"} {
		msg := message.NewMessage(watermill.NewUUID(), message.Payload("order "+order))
		msg.Metadata.Set("producer", "shop")
		msg.Metadata.Set("order", order)
		must(0, pubsub.Publish("orders", msg))
	}
	ended := make(chan error)
	go func() { ended <- router.Run(t.Context()) }()
	got := map[string]bool{<-shipped: true, <-shipped: true}
	must(0, router.Close())
	must(0, <-ended)
	if !got["order 7"] || !got["order 8"] || len(shipped) > 0 {
		t.Errorf("shipped %v and %d more, want each order once", got, len(shipped))
	}
}
