package chatdb

import (
	"context"
	"fmt"
)

// ServerID is the user who is the author of what the server itself says. Nobody
// can sign in as this user, and nobody can invite it.
const ServerID = 0

// LogWelcomeTx notes that an attempt welcomed a member to a group. The log is only
// ever added to, and takes whatever it is told.
func LogWelcomeTx(ctx context.Context, tx Tx, group string, user int64, attempt uint32) error {
	err := tx.Exec(ctx,
		`insert into welcomes (group_id, user_id, attempt) values ($1, $2, $3)`, group, user, int64(attempt))
	if err != nil {
		return fmt.Errorf("insert welcome: %w", err)
	}
	return nil
}
