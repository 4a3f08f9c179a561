package doctest_test

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/outbox"
)

type SavedOrder struct{ Number string }

var placeOrder = semel.Define("place_order", semel.OperationOptions[Order]{})

func insertOrder(ctx context.Context, tx *sql.Tx, o Order) (SavedOrder, []byte, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO orders DEFAULT VALUES`)
	return SavedOrder{o.Item}, nil, err
}

var _ = []any{appended, relayed}

// appended and relayed contain the fragments of docs/recipes/outbox.md.
func appended(ctx context.Context, engine *semel.Engine[*sql.Tx], scope semel.Scope, key string, req Order) (SavedOrder, bool, error) {
	order, replayed, err := semel.DoTx(ctx, engine, placeOrder.Call(scope, key, req),
		func(ctx context.Context, tx *sql.Tx) (SavedOrder, error) {
			order, body, err := insertOrder(ctx, tx, req)
			if err != nil {
				return SavedOrder{}, err
			}
			return order, outbox.AppendTx(ctx, engine, tx, outbox.Event{
				Topic: "orders", Aggregate: order.Number, Type: "OrderPlaced", Payload: body,
			})
		})
	return order, replayed, err
}

func relayed(ctx context.Context, engine *semel.Engine[*sql.Tx], publisher outbox.Publisher) error {
	relay, err := outbox.NewRelay(engine, publisher, outbox.Options{})
	if err != nil {
		return err
	}
	return relay.Run(ctx) // until ctx ends; then it gives its lanes back
}
