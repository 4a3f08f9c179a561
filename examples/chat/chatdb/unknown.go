package chatdb

import (
	"context"
	"fmt"
	"slices"
)

// UnknownUsersError lists the IDs of users that do not exist, sorted.
type UnknownUsersError struct{ IDs []int64 }

// Error lists the IDs.
func (e *UnknownUsersError) Error() string { return fmt.Sprintf("chatdb: unknown users %v", e.IDs) }

// unknownUsers returns a *UnknownUsersError if one of the users is no member of
// the group. All of them were added, so a user that is no member does not exist.
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

// membersOf lists the members of a group, sorted by ID.
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
