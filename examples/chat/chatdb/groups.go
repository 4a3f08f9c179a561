package chatdb

import (
	"context"
	"fmt"
	"time"
)

// Group is a group. Members are sorted by ID and include the owner.
type Group struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	OwnerID        int64     `json:"owner_id"`
	ConversationID string    `json:"conversation_id"`
	Members        []int64   `json:"members"`
	CreatedAt      time.Time `json:"created_at"`
}

// groupsQuery reads groups with a row for each member. The verb %s is the
// condition.
const groupsQuery = `
select g.id, g.name, g.owner_id, c.id, g.created_at, m.user_id
from groups g join conversations c on c.group_id = g.id join memberships m on m.group_id = g.id
where m.founding >= $1 and %s
order by g.created_at, g.id, m.user_id`

// anyMember and foundingMember are the least value of column founding that a
// query selects.
const (
	anyMember      = 0
	foundingMember = 1
)

// GroupByID returns a group with its current members, or ErrNotFound.
func GroupByID(ctx context.Context, q Querier, id string) (Group, error) {
	return oneGroup(ctx, q, `g.id = $2`, anyMember, id)
}

// GroupByCreation returns the group that the owner created with a key, with the
// members it had then, or ErrNotFound. It finds only groups that store their key,
// never one that merely has the same name and members.
func GroupByCreation(ctx context.Context, q Querier, owner int64, key string) (Group, error) {
	return oneGroup(ctx, q, `g.owner_id = $2 and g.creation_key = $3`, foundingMember, owner, key)
}

// GroupsOf lists the groups of a member, oldest first.
func GroupsOf(ctx context.Context, q Querier, user int64) ([]Group, error) {
	return readGroups(ctx, q,
		`exists (select 1 from memberships own where own.group_id = g.id and own.user_id = $2)`, anyMember, user)
}

func oneGroup(ctx context.Context, q Querier, where string, founding int, args ...any) (Group, error) {
	groups, err := readGroups(ctx, q, where, founding, args...)
	if err != nil {
		return Group{}, err
	}
	if len(groups) == 0 {
		return Group{}, fmt.Errorf("select group: %w", ErrNotFound)
	}
	return groups[0], nil
}

func readGroups(ctx context.Context, q Querier, where string, founding int, args ...any) ([]Group, error) {
	rows, err := q.Query(ctx, fmt.Sprintf(groupsQuery, where), append([]any{founding}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("select groups: %w", err)
	}
	defer rows.Close()
	groups := []Group{}
	for rows.Next() {
		var (
			g               Group
			created, member int64
		)
		if err := rows.Scan(&g.ID, &g.Name, &g.OwnerID, &g.ConversationID, &created, &member); err != nil {
			return nil, fmt.Errorf("scan group: %w", err)
		}
		if len(groups) == 0 || groups[len(groups)-1].ID != g.ID {
			g.CreatedAt = timeOf(created)
			groups = append(groups, g)
		}
		last := &groups[len(groups)-1]
		last.Members = append(last.Members, member)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	return groups, nil
}

// IsMember reports whether a user belongs to a group.
func IsMember(ctx context.Context, q Querier, group string, user int64) (bool, error) {
	var found bool
	err := q.QueryRow(ctx,
		`select exists (select 1 from memberships where group_id = $1 and user_id = $2)`, group, user).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("select membership: %w", err)
	}
	return found, nil
}
