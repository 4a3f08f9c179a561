package brokers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
	"github.com/semelgo/semel/outbox"
	"github.com/semelgo/semel/semelwatermill"
)

// Topic is where the shop publishes the changes of its orders.
const Topic = "orders"

// Change is a request to change an order.
type Change struct {
	Order, Text string
}

var change = semel.Define("change_order", semel.OperationOptions[Change]{})

// ChangeOrder changes an order once for each key, and publishes the change. The row of the
// order is locked before the event is appended, so the events of an order have the order
// of its versions. It returns the new version.
func ChangeOrder(ctx context.Context, e *semel.Engine[*sql.Tx], key string, c Change) (version int, err error) {
	version, _, err = semel.DoTx(ctx, e, change.Call(semel.ScopeOf("shop"), key, c), func(ctx context.Context, tx *sql.Tx) (int, error) {
		var version int
		err := tx.QueryRowContext(ctx, `INSERT INTO orders (id, version) VALUES (?, 1)
ON CONFLICT (id) DO UPDATE SET version = version + 1 RETURNING version`, c.Order).Scan(&version)
		if err != nil {
			return 0, fmt.Errorf("change order %s: %w", c.Order, err)
		}
		return version, outbox.AppendTx(ctx, e, tx, outbox.Event{
			Topic: Topic, Aggregate: c.Order, Type: "OrderChanged", Payload: []byte(c.Text),
			Headers: map[string]string{"version": strconv.Itoa(version)},
		})
	})
	return version, err
}

// Shipping is the other service: it writes each change of an order into its own database
// once, however often the broker delivers it. rejected receives the messages that can never
// be handled.
func Shipping(e *semel.Engine[*sql.Tx], from message.Subscriber, rejected message.Publisher) (*message.Router, error) {
	in, err := inbox.New("ship_order", inbox.Options[semel.Raw]{Group: "shipping"})
	if err != nil {
		return nil, fmt.Errorf("make the inbox: %w", err)
	}
	once, err := semelwatermill.MiddlewareTx(in, e, semelwatermill.Options{
		Name: semelwatermill.FromUUID("shop"), Poison: rejected, PoisonTopic: "orders_rejected",
	})
	if err != nil {
		return nil, fmt.Errorf("make the middleware: %w", err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make the router: %w", err)
	}
	router.AddMiddleware(once)
	router.AddConsumerHandler("ship", Topic, from, func(msg *message.Message) error {
		tx, ok := semel.TxOf(msg.Context(), e)
		if !ok {
			return errors.New("there is no transaction")
		}
		_, err := tx.ExecContext(msg.Context(), `INSERT INTO shipped (order_id, version, text) VALUES (?, ?, ?)`,
			msg.Metadata.Get(semelwatermill.MetadataAggregate), msg.Metadata.Get("version"), string(msg.Payload))
		return err
	})
	return router, nil
}
