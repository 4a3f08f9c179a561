package chatdb

import (
	"context"
	"fmt"
	"time"
)

// Boost is a payment of a user for a group. The ID of the charge identifies the
// boost.
type Boost struct {
	ChargeID  string    `json:"charge_id"`
	GroupID   string    `json:"group_id"`
	UserID    int64     `json:"user_id"`
	Amount    int64     `json:"amount"` // in the currency's smallest unit
	Currency  string    `json:"currency"`
	CreatedAt time.Time `json:"created_at"`
}

const boostColumns = `select charge_id, group_id, user_id, amount, currency, created_at from boosts `

// BoostGroupTx inserts a boost and returns the stored row. If the charge has a
// boost already, it changes nothing and returns that one.
func BoostGroupTx(ctx context.Context, tx Tx, b Boost) (Boost, error) {
	insert := tx.dialect().insertNew +
		` boosts (charge_id, group_id, user_id, amount, currency, created_at) values ($1, $2, $3, $4, $5, $6)` +
		tx.dialect().orNothing
	err := tx.Exec(ctx, insert, b.ChargeID, b.GroupID, b.UserID, b.Amount, b.Currency, now().UnixMicro())
	if err != nil {
		return Boost{}, fmt.Errorf("insert boost: %w", err)
	}
	return scanBoost(tx.QueryRow(ctx, boostColumns+`where charge_id = $1`, b.ChargeID))
}

// BoostsOf lists the boosts of a group, oldest first.
func BoostsOf(ctx context.Context, q Querier, group string) ([]Boost, error) {
	rows, err := q.Query(ctx, boostColumns+`where group_id = $1 order by created_at, charge_id`, group)
	if err != nil {
		return nil, fmt.Errorf("select boosts: %w", err)
	}
	return collect(rows, scanBoost)
}

func scanBoost(row Row) (Boost, error) {
	var (
		b       Boost
		created int64
	)
	if err := row.Scan(&b.ChargeID, &b.GroupID, &b.UserID, &b.Amount, &b.Currency, &created); err != nil {
		return Boost{}, fmt.Errorf("read boost: %w", err)
	}
	b.CreatedAt = timeOf(created)
	return b, nil
}
