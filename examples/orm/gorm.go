package orm

import (
	"context"
	"database/sql"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// GORM returns an Insert that uses GORM.
func GORM(db *sql.DB) (Insert, error) {
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *sql.Tx, in NewOrder) (int64, error) {
		within := g.Session(&gorm.Session{NewDB: true, Context: ctx})
		within.Statement.ConnPool = tx // as GORM's own Begin does
		order := Order{Item: in.Item, Amount: in.Amount}
		err := within.Transaction(func(inner *gorm.DB) error { // a savepoint
			if err := inner.Create(&order).Error; err != nil {
				return err
			}
			taken := inner.Table("stock").Where("item = ?", in.Item).Update("amount", gorm.Expr("amount - ?", in.Amount))
			return orUnknown(taken.RowsAffected, taken.Error)
		})
		return order.ID, err
	}, nil
}
