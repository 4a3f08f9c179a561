package server

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// newCharge is the body of a request to charge.
type newCharge struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// charge is a charge that was made.
type charge struct {
	ID        string    `json:"id"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	Reference string    `json:"reference"`
	CreatedAt time.Time `json:"created_at"`
}

func chargeTx(ctx context.Context, tx *sql.Tx, merchant string, n newCharge) (charge, error) {
	c := charge{
		ID: "chg_" + strings.ToLower(rand.Text()), Amount: n.Amount, Currency: n.Currency, Reference: n.Reference,
		CreatedAt: time.UnixMicro(time.Now().UnixMicro()).UTC(),
	}
	_, err := tx.ExecContext(ctx,
		`insert into charges (id, merchant, amount, currency, reference, created_at) values (?, ?, ?, ?, ?, ?)`,
		c.ID, merchant, c.Amount, c.Currency, c.Reference, c.CreatedAt.UnixMicro())
	if err != nil {
		return charge{}, fmt.Errorf("insert charge: %w", err)
	}
	return c, nil
}

// chargesOf lists a merchant's charges with a reference, oldest first.
func chargesOf(ctx context.Context, db *sql.DB, merchant, reference string) ([]charge, error) {
	rows, err := db.QueryContext(ctx, `
select id, amount, currency, reference, created_at from charges
where merchant = ? and reference = ? order by rowid`, merchant, reference)
	if err != nil {
		return nil, fmt.Errorf("select charges: %w", err)
	}
	defer rows.Close()
	charges := []charge{}
	for rows.Next() {
		var (
			c       charge
			created int64
		)
		if err := rows.Scan(&c.ID, &c.Amount, &c.Currency, &c.Reference, &created); err != nil {
			return nil, fmt.Errorf("read charge: %w", err)
		}
		c.CreatedAt = time.UnixMicro(created).UTC()
		charges = append(charges, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read charges: %w", err)
	}
	return charges, nil
}
