package chatdb

import (
	"context"
	"encoding/json"
	"fmt"
)

// UnknownUsersError says which of the users asked for do not exist, in the order
// of their numbers.
type UnknownUsersError struct{ IDs []int64 }

// Error names them.
func (e *UnknownUsersError) Error() string { return fmt.Sprintf("chatdb: unknown users %v", e.IDs) }

// unknownUsers returns a *UnknownUsersError when one of the users does not exist.
func unknownUsers(ctx context.Context, q Querier, users []int64) error {
	asked, err := json.Marshal(users)
	if err != nil {
		return fmt.Errorf("encode users: %w", err)
	}
	var found []byte
	err = q.QueryRowContext(ctx, `
select json_group_array(value) from
  (select distinct value from json_each(?) where value not in (select id from users) order by value)`,
		string(asked)).Scan(&found)
	if err != nil {
		return fmt.Errorf("select unknown users: %w", err)
	}
	var unknown []int64
	if err := json.Unmarshal(found, &unknown); err != nil {
		return fmt.Errorf("decode unknown users: %w", err)
	}
	if len(unknown) > 0 {
		return &UnknownUsersError{IDs: unknown}
	}
	return nil
}
