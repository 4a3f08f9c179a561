package orm

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
)

// SQLX returns an Insert that uses sqlx.
func SQLX(db *sql.DB) Insert {
	mapper := sqlx.NewDb(db, "pgx").Mapper
	return func(ctx context.Context, sqlTx *sql.Tx, in NewOrder) (int64, error) {
		tx := sqlx.Tx{Tx: sqlTx, Mapper: mapper}
		var order Order
		err := tx.GetContext(ctx, &order, `INSERT INTO orders (item, amount) VALUES ($1, $2) RETURNING id, item, amount`, in.Item, in.Amount)
		if err != nil {
			return 0, err
		}
		result, err := tx.ExecContext(ctx, `UPDATE stock SET amount = amount - $1 WHERE item = $2`, in.Amount, in.Item)
		return order.ID, orUnknownResult(result, err)
	}
}

// orUnknownResult is orUnknown for the result of a statement.
func orUnknownResult(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	return orUnknown(result.RowsAffected())
}

// orUnknown returns ErrUnknownItem if no row was changed.
func orUnknown(changed int64, err error) error {
	if err == nil && changed == 0 {
		return ErrUnknownItem
	}
	return err
}
