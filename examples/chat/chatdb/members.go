package chatdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// AddMembers adds members to a group of its owner, and returns the group and the new
// members. Existing members stay. If a user does not exist, the error is a
// *UnknownUsersError.
func (w Writer) AddMembers(ctx context.Context, tx Tx, group string, by int64, users []int64) (Group, []int64, error) {
	g, err := lockOwnGroup(ctx, tx, group, by)
	if err != nil {
		return Group{}, nil, err
	}
	joined, err := g.join(ctx, tx, users)
	if err != nil {
		return Group{}, nil, err
	}
	if len(joined) == 0 {
		now, err := GroupByID(ctx, tx, group)
		return now, nil, err
	}
	now, err := w.groupChange(ctx, tx, g, joined, nil)
	return now, joined, err
}

// join adds the existing users to a group. It inserts them in the order of their IDs, so
// that two transactions cannot deadlock. New members have read what was sent before.
func (g *lockedGroup) join(ctx context.Context, tx Tx, users []int64) (joined []int64, err error) {
	users = slices.Compact(slices.Sorted(slices.Values(users)))
	insert := tx.dialect().insertNew +
		` memberships (group_id, user_id, joined, read_seq) select $1, id, $2, $3 from users where id = $4` +
		tx.dialect().orNothing + ` returning user_id`
	for _, user := range users {
		err := tx.QueryRow(ctx, insert, g.id, g.change, g.seq, user).Scan(&user)
		switch {
		case err == nil:
			joined = append(joined, user)
		case !errors.Is(err, ErrNotFound): // not found: a member already, or no such user
			return nil, fmt.Errorf("insert membership: %w", err)
		}
	}
	return joined, unknownUsers(ctx, tx, g.id, users)
}

// RemoveMember removes a member. The owner may remove every member, and each member may
// leave. If the owner leaves, the longest member becomes the owner. If the user is not a
// member, nothing changes.
func (w Writer) RemoveMember(ctx context.Context, tx Tx, group string, by, user int64) error {
	g, err := lockGroup(ctx, tx, group, by)
	if by == user && errors.Is(err, ErrNotMember) {
		return nil // has left already
	}
	if err == nil && by != user && by != g.owner {
		err = ErrNotOwner
	}
	if err != nil {
		return err
	}
	if err := CheckMember(ctx, tx, group, user); errors.Is(err, ErrNotMember) {
		return nil
	}
	if err := tx.Exec(ctx, `delete from memberships where group_id = $1 and user_id = $2`, group, user); err != nil {
		return fmt.Errorf("delete membership: %w", err)
	}
	if user == g.owner {
		err := tx.QueryRow(ctx,
			`select user_id from memberships where group_id = $1 order by joined, user_id limit 1`, group).Scan(&g.owner)
		if err != nil && !errors.Is(err, ErrNotFound) { // not found: the group has no members now
			return fmt.Errorf("select longest member: %w", err)
		}
	}
	_, err = w.groupChange(ctx, tx, g, nil, []int64{user})
	return err
}

// Rename gives a group of its owner another name.
func (w Writer) Rename(ctx context.Context, tx Tx, group string, by int64, name string) (Group, error) {
	g, err := lockOwnGroup(ctx, tx, group, by)
	if err != nil {
		return Group{}, err
	}
	if g.name == name {
		return GroupByID(ctx, tx, group)
	}
	g.name = name
	return w.groupChange(ctx, tx, g, nil, nil)
}

// MoveReadTx moves the read marker of a member forward to a message, or to the last
// message if there is none with this number yet. It returns the marker, which never goes
// back, and whether it has moved. It takes no change number.
func MoveReadTx(ctx context.Context, tx Tx, group string, user, seq int64) (read int64, moved bool, err error) {
	if err := CheckMember(ctx, tx, group, user); err != nil {
		return 0, false, err
	}
	var last int64
	if err := tx.QueryRow(ctx, `select last_seq from groups where id = $1`, group).Scan(&last); err != nil {
		return 0, false, fmt.Errorf("select last message: %w", err)
	}
	err = tx.QueryRow(ctx, `select read_seq from memberships where group_id = $1 and user_id = $2`+tx.dialect().lockRow, group, user).Scan(&read)
	if errors.Is(err, ErrNotFound) {
		return 0, false, ErrNotMember // removed meanwhile
	}
	if err != nil {
		return 0, false, fmt.Errorf("select read marker: %w", err)
	}
	seq = min(seq, last)
	if seq <= read {
		return read, false, nil
	}
	if err := tx.Exec(ctx, `update memberships set read_seq = $3 where group_id = $1 and user_id = $2`, group, user, seq); err != nil {
		return 0, false, fmt.Errorf("update read marker: %w", err)
	}
	return seq, true, nil
}

// CoMembers lists the users that share a group with a user, and the user if there is a group.
func CoMembers(ctx context.Context, q Querier, user int64) ([]int64, error) {
	rows, err := q.Query(ctx, `
select distinct other.user_id from memberships own join memberships other on other.group_id = own.group_id
where own.user_id = $1`, user)
	if err != nil {
		return nil, fmt.Errorf("select members of the same groups: %w", err)
	}
	return collect(rows, func(row Row) (id int64, err error) {
		return id, row.Scan(&id)
	})
}
