package orm

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// Bun returns an Insert that uses bun.
func Bun(db *sql.DB) Insert {
	b := bun.NewDB(db, pgdialect.New())
	return func(ctx context.Context, tx *sql.Tx, in NewOrder) (int64, error) {
		order := Order{Item: in.Item, Amount: in.Amount}
		if _, err := b.NewInsert().Conn(tx).Model(&order).Exec(ctx); err != nil {
			return 0, err
		}
		result, err := b.NewUpdate().Conn(tx).Table("stock").Set("amount = amount - ?", in.Amount).Where("item = ?", in.Item).Exec(ctx)
		return order.ID, orUnknownResult(result, err)
	}
}
