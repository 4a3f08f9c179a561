package orm

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/semelgo/semel/examples/orm/ent"
)

//go:generate go run entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/execquery ./ent/schema

// Ent is an Insert that uses the code that ent has generated of ent/schema. The client lives
// as long as tx. It cannot begin a transaction within tx: its method Tx returns an error.
func Ent(ctx context.Context, tx *sql.Tx, in NewOrder) (int64, error) {
	client := ent.NewClient(ent.Driver(entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})))
	order, err := client.Order.Create().SetItem(in.Item).SetAmount(in.Amount).Save(ctx)
	if err != nil {
		return 0, err
	}
	result, err := client.ExecContext(ctx, `UPDATE stock SET amount = amount - $1 WHERE item = $2`, in.Amount, in.Item)
	return order.ID, orUnknownResult(result, err)
}
