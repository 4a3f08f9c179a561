package chatdb

import (
	"context"
	"fmt"
)

// NewGroup is the input of Writer.CreateGroup.
type NewGroup struct {
	OwnerID int64
	Name    string
	Members []int64 // the owner may be left out; duplicates are ignored
	// Key is stored with the group, so that GroupByCreation finds it. It is unique
	// for each owner. Empty: no key is stored.
	Key string
}

// CreateGroup creates a group, its conversation and its memberships. This is the first
// change of the group. If a member does not exist, the error is a *UnknownUsersError. The
// caller must then roll back, because some rows are written already.
func (w Writer) CreateGroup(ctx context.Context, tx Tx, n NewGroup) (Group, error) {
	g := &lockedGroup{id: newID("grp"), name: n.Name, owner: n.OwnerID, change: foundingMember}
	err := tx.Exec(ctx,
		`insert into groups (id, name, owner_id, created_at, creation_key) values ($1, $2, $3, $4, $5)`,
		g.id, g.name, g.owner, now().UnixMicro(), keyColumn(n.Key))
	if err != nil {
		return Group{}, fmt.Errorf("insert group: %w", err)
	}
	err = tx.Exec(ctx, `insert into conversations (id, group_id) values ($1, $2)`, newID("cnv"), g.id)
	if err != nil {
		return Group{}, fmt.Errorf("insert conversation: %w", err)
	}
	joined, err := g.join(ctx, tx, append([]int64{g.owner}, n.Members...))
	if err != nil {
		return Group{}, err
	}
	return w.groupChange(ctx, tx, g, joined, nil)
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
