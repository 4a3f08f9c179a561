package chatdb

import (
	"context"
	"fmt"
)

// ServerID is the ID of the user who is the author of the server's own messages.
// This user cannot sign in and cannot become a member of a group.
const ServerID = 0

// LogWelcomeTx logs that an attempt welcomed a member to a group. The log has no
// unique constraint, so a duplicate execution would show.
func LogWelcomeTx(ctx context.Context, tx Tx, group string, user int64, attempt uint32) error {
	err := tx.Exec(ctx,
		`insert into welcomes (group_id, user_id, attempt) values ($1, $2, $3)`, group, user, int64(attempt))
	if err != nil {
		return fmt.Errorf("insert welcome: %w", err)
	}
	return nil
}
