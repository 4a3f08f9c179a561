package orm

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel/examples/orm/orders"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.30.0 generate

// SQLC is an Insert that uses the code that sqlc has generated of query.sql.
func SQLC(ctx context.Context, tx *sql.Tx, in NewOrder) (int64, error) {
	q := orders.New(tx)
	id, err := q.InsertOrder(ctx, orders.InsertOrderParams{Item: in.Item, Amount: in.Amount})
	if err != nil {
		return 0, err
	}
	return id, orUnknown(q.TakeStock(ctx, orders.TakeStockParams{Taken: in.Amount, Item: in.Item}))
}
