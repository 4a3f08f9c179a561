package chatdb

import (
	"context"
	"fmt"
	"slices"
)

// UnknownUsersError says which of the users asked for do not exist, in the order
// of their numbers.
type UnknownUsersError struct{ IDs []int64 }

// Error names them.
func (e *UnknownUsersError) Error() string { return fmt.Sprintf("chatdb: unknown users %v", e.IDs) }

// unknownUsers returns a *UnknownUsersError when one of the users, who were all
// asked into the group, did not become a member for not existing.
func unknownUsers(ctx context.Context, q Querier, group string, users []int64) error {
	members, err := membersOf(ctx, q, group)
	if err != nil {
		return err
	}
	unknown := slices.DeleteFunc(slices.Clone(users), func(user int64) bool {
		_, found := slices.BinarySearch(members, user)
		return found
	})
	if len(unknown) > 0 {
		return &UnknownUsersError{IDs: unknown}
	}
	return nil
}

// membersOf lists the members of a group in the order of their numbers.
func membersOf(ctx context.Context, q Querier, group string) ([]int64, error) {
	rows, err := q.Query(ctx, `select user_id from memberships where group_id = $1 order by user_id`, group)
	if err != nil {
		return nil, fmt.Errorf("select members: %w", err)
	}
	defer rows.Close()
	var members []int64
	for rows.Next() {
		var user int64
		if err := rows.Scan(&user); err != nil {
			return nil, fmt.Errorf("scan member: %w", err)
		}
		members = append(members, user)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read members: %w", err)
	}
	return members, nil
}
