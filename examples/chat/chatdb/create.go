package chatdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// NewGroup is what it takes to create a group.
type NewGroup struct {
	OwnerID int64
	Name    string
	Members []int64 // the owner may be left out; twice is once
	// Key is kept with the group, once per owner, so that the group can be found
	// by it. Empty: none is kept.
	Key string
}

// CreateGroupTx creates a group, its conversation and its memberships. It says
// *UnknownUsersError when a member does not exist, by then having written much
// of it: the transaction is to be rolled back.
func CreateGroupTx(ctx context.Context, tx Tx, n NewGroup) (Group, error) {
	g := Group{
		ID: newID("grp"), ConversationID: newID("cnv"),
		Name: n.Name, OwnerID: n.OwnerID, CreatedAt: now(),
	}
	err := tx.Exec(ctx,
		`insert into groups (id, name, owner_id, created_at, creation_key) values ($1, $2, $3, $4, $5)`,
		g.ID, g.Name, g.OwnerID, g.CreatedAt.UnixMicro(), keyColumn(n.Key))
	if err != nil {
		return Group{}, fmt.Errorf("insert group: %w", err)
	}
	err = tx.Exec(ctx, `insert into conversations (id, group_id) values ($1, $2)`, g.ConversationID, g.ID)
	if err != nil {
		return Group{}, fmt.Errorf("insert conversation: %w", err)
	}
	if _, err := join(ctx, tx, g.ID, foundingMember, append([]int64{g.OwnerID}, n.Members...)); err != nil {
		return Group{}, err
	}
	return oneGroup(ctx, tx, `g.id = $2`, foundingMember, g.ID)
}

// LogCreationTx notes that an attempt created a group. The log is only ever
// added to, and takes whatever it is told.
func LogCreationTx(ctx context.Context, tx Tx, owner int64, key string, attempt uint32) error {
	err := tx.Exec(ctx,
		`insert into creations (owner, key, attempt) values ($1, $2, $3)`, owner, key, int64(attempt))
	if err != nil {
		return fmt.Errorf("insert creation: %w", err)
	}
	return nil
}

// AddMembersTx adds members to a group and returns those who are new; the others
// stay as they are. It says *UnknownUsersError when one does not exist.
func AddMembersTx(ctx context.Context, tx Tx, group string, users []int64) (joined []int64, err error) {
	return join(ctx, tx, group, anyMember, users)
}

// join adds those users to a group who exist, in the order of their numbers, so
// that no two transactions wait for each other.
func join(ctx context.Context, tx Tx, group string, founding int, users []int64) (joined []int64, err error) {
	users = slices.Compact(slices.Sorted(slices.Values(users)))
	for _, user := range users {
		err := tx.QueryRow(ctx, `
insert into memberships (group_id, user_id, founding) select $1, id, $2 from users where id = $3
on conflict do nothing returning user_id`, group, founding, user).Scan(&user)
		switch {
		case err == nil:
			joined = append(joined, user)
		case !errors.Is(err, ErrNotFound): // a member already, or nobody
			return nil, fmt.Errorf("insert membership: %w", err)
		}
	}
	return joined, unknownUsers(ctx, tx, group, users)
}
