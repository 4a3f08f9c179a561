package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// A lock of GET_LOCK is known to one node only. On a Galera cluster, a row with an owner
// and the time of its last renewal is the lock: the cluster lets one of two conflicting
// writes commit. Without it, two nodes that create the same view at the same time wait
// for each other without end, and all writes of the cluster wait with them.

// claimLease is how long a claim lasts after its last renewal. It must be longer than
// the nodes' clocks differ. A statement may last longer: other nodes cannot write before
// it ends, and its process then fails to renew the claim and begins again.
const claimLease = 15 * time.Second

// errClaimLost means that another process migrates now.
var errClaimLost = errors.New("another process has taken the migration over")

// claim is the right of one process to migrate.
type claim struct {
	table string
	owner uint64
}

func newClaim(prefix string) *claim { return &claim{table: prefix + "migrating", owner: rand.Uint64()} }

// take waits for the claim, as long as ctx lasts.
func (c *claim) take(ctx context.Context, conn *sql.Conn) error {
	create := `CREATE TABLE IF NOT EXISTS ` + c.table + ` (
  id      TINYINT         NOT NULL PRIMARY KEY,
  owner   BIGINT UNSIGNED NOT NULL,
  renewed DATETIME(6)     NOT NULL
) ENGINE=InnoDB`
	if _, err := conn.ExecContext(ctx, create); err != nil {
		return fmt.Errorf("create the table %s: %w", c.table, err)
	}
	// The server assigns from left to right.
	insert := fmt.Sprintf(`INSERT INTO %s (id, owner, renewed) VALUES (1, %d, UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE
  owner = IF(renewed < UTC_TIMESTAMP(6) - INTERVAL %d SECOND, VALUES(owner), owner),
  renewed = IF(owner = VALUES(owner), UTC_TIMESTAMP(6), renewed)`, c.table, c.owner, int(claimLease.Seconds()))
	for {
		_, err := conn.ExecContext(ctx, insert)
		if err == nil {
			err = c.check(ctx, conn)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errClaimLost) && !isConflict(err):
			return err
		case !pause(ctx):
			return fmt.Errorf("another process has the claim in %s: %w", c.table, ctx.Err())
		}
	}
}

// renew renews the claim, or fails if another process has it.
func (c *claim) renew(ctx context.Context, conn *sql.Conn) error {
	update := fmt.Sprintf(`UPDATE %s SET renewed = UTC_TIMESTAMP(6) WHERE owner = %d`, c.table, c.owner)
	if _, err := conn.ExecContext(ctx, update); err != nil {
		return err
	}
	return c.check(ctx, conn)
}

func (c *claim) check(ctx context.Context, conn *sql.Conn) error {
	var owner uint64
	err := conn.QueryRowContext(ctx, `SELECT owner FROM `+c.table).Scan(&owner)
	if errors.Is(err, sql.ErrNoRows) || err == nil && owner != c.owner {
		return errClaimLost
	}
	return err
}

// release is the statement that gives the claim up.
func (c *claim) release() string {
	return fmt.Sprintf(`DELETE FROM %s WHERE owner = %d`, c.table, c.owner)
}

// isGalera reports whether the server is a node of a Galera cluster.
func isGalera(ctx context.Context, db *sql.DB) (bool, error) {
	var name, value string
	err := db.QueryRowContext(ctx, `SHOW GLOBAL VARIABLES LIKE 'wsrep_on'`).Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) { // MySQL
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read wsrep_on: %w", err)
	}
	return value == "ON", nil
}

// pause waits for a short random time, so that two processes do not meet again. It
// returns false if ctx ends first.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(time.Duration(1+rand.IntN(100)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
