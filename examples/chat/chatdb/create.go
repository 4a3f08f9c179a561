package chatdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// NewGroup is the input of CreateGroupTx.
type NewGroup struct {
	OwnerID int64
	Name    string
	Members []int64 // the owner may be left out; duplicates are ignored
	// Key is stored with the group, so that GroupByCreation finds it. It is unique
	// for each owner. Empty: no key is stored.
	Key string
}

// CreateGroupTx creates a group, its conversation and its memberships. If a
// member does not exist, the error is a *UnknownUsersError. The caller must then
// roll back, because some rows are written already.
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

// LogCreationTx logs that an attempt created a group. The log has no unique
// constraint, so a duplicate execution would show.
func LogCreationTx(ctx context.Context, tx Tx, owner int64, key string, attempt uint32) error {
	err := tx.Exec(ctx,
		`insert into creations (owner, "key", attempt) values ($1, $2, $3)`, owner, key, int64(attempt))
	if err != nil {
		return fmt.Errorf("insert creation: %w", err)
	}
	return nil
}

// AddMembersTx adds members to a group and returns the new ones. Existing members
// stay. If a user does not exist, the error is a *UnknownUsersError.
func AddMembersTx(ctx context.Context, tx Tx, group string, users []int64) (joined []int64, err error) {
	return join(ctx, tx, group, anyMember, users)
}

// join adds the existing users to a group. It inserts them in the order of their
// IDs, so that two transactions cannot deadlock.
func join(ctx context.Context, tx Tx, group string, founding int, users []int64) (joined []int64, err error) {
	users = slices.Compact(slices.Sorted(slices.Values(users)))
	insert := tx.dialect().insertNew + ` memberships (group_id, user_id, founding) select $1, id, $2 from users where id = $3` +
		tx.dialect().orNothing + ` returning user_id`
	for _, user := range users {
		err := tx.QueryRow(ctx, insert, group, founding, user).Scan(&user)
		switch {
		case err == nil:
			joined = append(joined, user)
		case !errors.Is(err, ErrNotFound): // not found: a member already, or no such user
			return nil, fmt.Errorf("insert membership: %w", err)
		}
	}
	return joined, unknownUsers(ctx, tx, group, users)
}
