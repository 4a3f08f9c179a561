package mariadb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
)

const plainSchema = `CREATE TABLE naive (
  k       VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  state   TINYINT NOT NULL,
  result  BLOB,
  created BIGINT NOT NULL,
  expires BIGINT
) ENGINE=InnoDB`

const (
	claimPlain    = `INSERT IGNORE INTO naive (k, state, created, expires) VALUES (?, 1, unix_timestamp(), unix_timestamp() + 86400)`
	completePlain = `UPDATE naive SET state = 2, result = ? WHERE k = ? AND state = 1`
	insertPlain   = `INSERT INTO naive (k, state, result, created, expires) VALUES (?, 2, ?, unix_timestamp(), unix_timestamp() + 86400)`
)

// naive claims and completes by two statements, each in its own transaction. The driver
// interpolates their arguments, which is faster than preparing them.
func naive(db *sql.DB) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := payment.Scope(c.N) + ":" + c.Key()
		if err := one(db.ExecContext(ctx, claimPlain, key)); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if err := one(db.ExecContext(ctx, completePlain, []byte(payment.Result()), key)); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		return nil
	}
}

// bare inserts the finished row once.
func bare(db *sql.DB) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		return one(db.ExecContext(ctx, insertPlain, payment.Scope(c.N)+":"+c.Key(), []byte(payment.Result())))
	}
}

func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows, %w", n, err)
	}
	return nil
}
