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
	CreatedAt      time.Time `json:"created_at"`
	LastSeq        int64     `json:"last_seq"`
	LastChange     int64     `json:"last_change"`
	LastMessage    *Message  `json:"last_message"` // nil: there is none
	Members        []Member  `json:"members"`
}

// Member is a member of a group.
type Member struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	ReadSeq int64  `json:"read_seq"`
	Owner   bool   `json:"owner"`
}

// OwnGroup is a group as one of its members sees it.
type OwnGroup struct {
	Group

	ReadSeq int64 `json:"read_seq"`
	Unread  int64 `json:"unread"` // messages after the read marker
}

// For returns the group as a member sees it.
func (g Group) For(user int64) OwnGroup {
	own := OwnGroup{Group: g}
	for _, m := range g.Members {
		if m.ID == user {
			own.ReadSeq, own.Unread = m.ReadSeq, max(0, g.LastSeq-m.ReadSeq)
		}
	}
	return own
}

// MemberIDs lists the IDs of the members.
func (g Group) MemberIDs() []int64 {
	ids := make([]int64, len(g.Members))
	for i, m := range g.Members {
		ids[i] = m.ID
	}
	return ids
}

// Values of column memberships.joined up to which a query selects members.
const (
	foundingMember = 1
	anyMember      = 1 << 62
)

// GroupByID returns a group with its current members, or ErrNotFound.
func GroupByID(ctx context.Context, q Querier, id string) (Group, error) {
	return oneGroup(ctx, q, anyMember, `g.id = $1`, id)
}

// GroupByCreation returns the group that the owner created with a key, as it was created,
// or ErrNotFound. It finds only groups that store their key, never one that merely has
// the same name and members. Of later changes it shows a new name, and it leaves out members
// that have left.
func GroupByCreation(ctx context.Context, q Querier, owner int64, key string) (Group, error) {
	g, err := oneGroup(ctx, q, foundingMember, `g.creation_key = $2 and g.owner_id = $1`, owner, key)
	if err != nil {
		return Group{}, err
	}
	g.LastSeq, g.LastChange, g.LastMessage = 0, foundingMember, nil
	for i := range g.Members {
		g.Members[i].ReadSeq = 0
	}
	return g, nil
}

// GroupsOf lists the groups of a member. The group with the newest message, or the newest
// group without messages, is the first.
func GroupsOf(ctx context.Context, q Querier, user int64) ([]Group, error) {
	return readGroups(ctx, q, anyMember,
		`exists (select 1 from memberships own where own.group_id = g.id and own.user_id = $1)`, user)
}

func oneGroup(ctx context.Context, q Querier, joined int64, where string, args ...any) (Group, error) {
	groups, err := readGroups(ctx, q, joined, where, args...)
	if err != nil {
		return Group{}, err
	}
	if len(groups) == 0 {
		return Group{}, fmt.Errorf("select group: %w", ErrNotFound)
	}
	return groups[0], nil
}

// readGroups reads the groups of a condition in three queries, however many there are.
// The counters are read first, so that the rest is as new as they are, or newer.
func readGroups(ctx context.Context, q Querier, joined int64, where string, args ...any) ([]Group, error) {
	rows, err := q.Query(ctx, `
select g.id, g.name, g.owner_id, c.id, g.created_at, g.last_seq, g.last_change
from groups g join conversations c on c.group_id = g.id left join messages m on m.group_id = g.id and m.seq = g.last_seq
where `+where+` order by coalesce(m.created_at, g.created_at) desc, g.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("select groups: %w", err)
	}
	groups, err := collect(rows, scanGroup)
	if err != nil || len(groups) == 0 {
		return groups, err
	}
	byID := make(map[string]*Group, len(groups))
	for i := range groups {
		byID[groups[i].ID] = &groups[i]
	}
	if err := addLastMessages(ctx, q, byID, where, args); err != nil {
		return nil, err
	}
	return groups, addMembers(ctx, q, byID, joined, where, args)
}

func scanGroup(row Row) (Group, error) {
	var (
		g       Group
		created int64
	)
	err := row.Scan(&g.ID, &g.Name, &g.OwnerID, &g.ConversationID, &created, &g.LastSeq, &g.LastChange)
	if err != nil {
		return Group{}, fmt.Errorf("scan group: %w", err)
	}
	g.CreatedAt, g.Members = timeOf(created), []Member{}
	return g, nil
}

func addLastMessages(ctx context.Context, q Querier, groups map[string]*Group, where string, args []any) error {
	rows, err := q.Query(ctx, messageColumns+`join groups g on g.id = m.group_id and g.last_seq = m.seq where `+where, args...)
	if err != nil {
		return fmt.Errorf("select last messages: %w", err)
	}
	messages, err := collect(rows, scanMessage)
	for _, m := range messages {
		if g := groups[m.GroupID]; g != nil {
			g.LastMessage = &m
		}
	}
	return err
}

func addMembers(ctx context.Context, q Querier, groups map[string]*Group, joined int64, where string, args []any) error {
	rows, err := q.Query(ctx, fmt.Sprintf(`
select g.id, u.id, u.name, m.read_seq
from groups g join memberships m on m.group_id = g.id join users u on u.id = m.user_id
where m.joined <= %d and %s order by u.id`, joined, where), args...)
	if err != nil {
		return fmt.Errorf("select members: %w", err)
	}
	_, err = collect(rows, func(row Row) (m Member, err error) {
		var group string
		if err := row.Scan(&group, &m.ID, &m.Name, &m.ReadSeq); err != nil {
			return m, fmt.Errorf("scan member: %w", err)
		}
		if g := groups[group]; g != nil {
			m.Owner = m.ID == g.OwnerID
			g.Members = append(g.Members, m)
		}
		return m, nil
	})
	return err
}

// CheckMember returns nil if a user belongs to a group, ErrNotMember if not, and
// ErrNotFound if there is no such group.
func CheckMember(ctx context.Context, q Querier, group string, user int64) error {
	var member bool
	err := q.QueryRow(ctx, `
select exists (select 1 from memberships m where m.group_id = g.id and m.user_id = $2) from groups g where g.id = $1`,
		group, user).Scan(&member)
	if err != nil {
		return fmt.Errorf("select membership: %w", err)
	}
	if !member {
		return ErrNotMember
	}
	return nil
}
