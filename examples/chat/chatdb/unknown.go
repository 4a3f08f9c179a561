package chatdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// UnknownUsersError lists the users that do not exist: their IDs, sorted, or their names.
type UnknownUsersError struct {
	IDs   []int64
	Names []string
}

// Error lists the users.
func (e *UnknownUsersError) Error() string {
	return fmt.Sprintf("chatdb: unknown users %v %q", e.IDs, e.Names)
}

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
	return collect(rows, func(row Row) (user int64, err error) {
		if err := row.Scan(&user); err != nil {
			return 0, fmt.Errorf("scan member: %w", err)
		}
		return user, nil
	})
}

// UserIDs returns the IDs of the users with these names. Each name is given as its user
// writes it and with its normalised form. If a user does not exist, the error is a
// *UnknownUsersError with the names.
func UserIDs(ctx context.Context, q Querier, names []NewUser) ([]int64, error) {
	var (
		ids     []int64
		unknown []string
	)
	for _, n := range names {
		var id int64
		err := q.QueryRow(ctx, `select id from users where name_key = $1 and id > 0`, n.NameKey).Scan(&id)
		switch {
		case errors.Is(err, ErrNotFound):
			unknown = append(unknown, n.Name)
		case err != nil:
			return nil, fmt.Errorf("select user: %w", err)
		default:
			ids = append(ids, id)
		}
	}
	if len(unknown) > 0 {
		return nil, &UnknownUsersError{Names: unknown}
	}
	return ids, nil
}
