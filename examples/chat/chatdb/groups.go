package chatdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Group is a group as everybody sees it. Members are in the order of their
// numbers and include the owner.
type Group struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	OwnerID        int64     `json:"owner_id"`
	ConversationID string    `json:"conversation_id"`
	Members        []int64   `json:"members"`
	CreatedAt      time.Time `json:"created_at"`
}

// groupsQuery reads groups with their members as a JSON list; %s chooses which.
const groupsQuery = `
select g.id, g.name, g.owner_id, c.id, g.created_at,
  (select json_group_array(user_id) from
    (select user_id from memberships m where m.group_id = g.id and m.founding >= ? order by user_id))
from groups g join conversations c on c.group_id = g.id
where %s
order by g.created_at, g.id`

// anyMember and foundingMember say which members a read asks for.
const (
	anyMember      = 0
	foundingMember = 1
)

// GroupByID finds a group as it is now, or says ErrNotFound.
func GroupByID(ctx context.Context, q Querier, id string) (Group, error) {
	return oneGroup(ctx, q, `g.id = ?`, anyMember, id)
}

// GroupByCreation finds the group that the owner created under a key, as it was
// when it was created, or says ErrNotFound. Only groups created with a key that
// is kept are found, never one that merely looks alike.
func GroupByCreation(ctx context.Context, q Querier, owner int64, key string) (Group, error) {
	return oneGroup(ctx, q, `g.owner_id = ? and g.creation_key = ?`, foundingMember, owner, key)
}

// GroupsOf lists the groups a user is a member of, oldest first.
func GroupsOf(ctx context.Context, q Querier, user int64) ([]Group, error) {
	return readGroups(ctx, q,
		`exists (select 1 from memberships m where m.group_id = g.id and m.user_id = ?)`, anyMember, user)
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
	rows, err := q.QueryContext(ctx, fmt.Sprintf(groupsQuery, where), append([]any{founding}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("select groups: %w", err)
	}
	defer func() { _ = rows.Close() }()
	groups := []Group{}
	for rows.Next() {
		g, err := scanGroup(rows)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	return groups, nil
}

func scanGroup(rows *sql.Rows) (Group, error) {
	var (
		g       Group
		created int64
		members []byte
	)
	if err := rows.Scan(&g.ID, &g.Name, &g.OwnerID, &g.ConversationID, &created, &members); err != nil {
		return Group{}, fmt.Errorf("scan group: %w", err)
	}
	if err := json.Unmarshal(members, &g.Members); err != nil {
		return Group{}, fmt.Errorf("decode members: %w", err)
	}
	g.CreatedAt = timeOf(created)
	return g, nil
}

// IsMember reports whether a user belongs to a group.
func IsMember(ctx context.Context, q Querier, group string, user int64) (bool, error) {
	var found bool
	err := q.QueryRowContext(ctx,
		`select exists (select 1 from memberships where group_id = ? and user_id = ?)`, group, user).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("select membership: %w", err)
	}
	return found, nil
}
