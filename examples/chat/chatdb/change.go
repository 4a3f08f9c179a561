package chatdb

import (
	"context"
	"errors"
	"fmt"
)

// Errors of writes that a user may not make.
var (
	ErrNotMember = errors.New("chatdb: the user is not a member of the group")
	ErrNotOwner  = errors.New("chatdb: the user is not the owner of the group")
	ErrNotAuthor = errors.New("chatdb: the user is not the author of the message")
)

// Writer makes the changes that the members of a group see, and opens and ends sessions. Its
// methods run in the caller's transaction. Those that change a group lock its row first,
// and check under this lock that the user may make the change.
type Writer struct {
	// Publish receives each change in the transaction that makes it. If it returns an
	// error, the write returns the error. Nil: changes are not published.
	Publish func(ctx context.Context, tx Tx, c Change) error
	// Revoked receives each session that ends before its time, as Publish does.
	Revoked func(ctx context.Context, tx Tx, user int64, session string) error
}

// Change is a change that the members of a group see. The changes of a group are
// numbered 1, 2, 3 … without gaps, in the order in which they commit.
type Change struct {
	Group  string
	Number int64
	// Frame is a MessageFrame or a GroupFrame. Its JSON is what the members' sessions
	// receive.
	Frame any
	// Audience are the users that were added or removed. They learn about the change even
	// if they do not listen to the group.
	Audience []int64
}

// MessageFrame tells members about a message that was sent, edited or deleted.
type MessageFrame struct {
	Push    string  `json:"push"` // PushMessage
	Group   string  `json:"group"`
	Change  int64   `json:"change"`
	Message Message `json:"message"`
}

// GroupFrame tells members that a group was created or renamed, or that its members have
// changed.
type GroupFrame struct {
	Push    string  `json:"push"` // PushGroup
	Group   string  `json:"group"`
	Change  int64   `json:"change"`
	Detail  Group   `json:"detail"`
	Added   []int64 `json:"added"`
	Removed []int64 `json:"removed"`
}

// The values of Push.
const (
	PushMessage = "message"
	PushGroup   = "group"
)

// lockedGroup is a group whose row is locked until the transaction ends.
type lockedGroup struct {
	id, name string
	owner    int64
	seq      int64 // of the last message
	change   int64 // the number of the current change
}

// lockGroup locks a group for a change by a user, who must be a member. The server's own
// user may change every group.
func lockGroup(ctx context.Context, tx Tx, id string, by int64) (*lockedGroup, error) {
	g := &lockedGroup{id: id}
	lock := `select name, owner_id, last_seq, last_change from groups where id = $1` + tx.dialect().lockRow
	if err := tx.QueryRow(ctx, lock, id).Scan(&g.name, &g.owner, &g.seq, &g.change); err != nil {
		return nil, fmt.Errorf("lock group: %w", err)
	}
	g.change++
	if by == ServerID {
		return g, nil
	}
	return g, CheckMember(ctx, tx, id, by)
}

// lockOwnGroup is lockGroup for changes that only the owner may make.
func lockOwnGroup(ctx context.Context, tx Tx, id string, by int64) (*lockedGroup, error) {
	g, err := lockGroup(ctx, tx, id, by)
	if err == nil && g.owner != by {
		err = ErrNotOwner
	}
	return g, err
}

func (g *lockedGroup) save(ctx context.Context, tx Tx) error {
	err := tx.Exec(ctx, `update groups set name = $2, owner_id = $3, last_seq = $4, last_change = $5 where id = $1`,
		g.id, g.name, g.owner, g.seq, g.change)
	if err != nil {
		return fmt.Errorf("update group: %w", err)
	}
	return nil
}

// messageChange completes the change of a message, and returns the message as it is now.
func (w Writer) messageChange(ctx context.Context, tx Tx, g *lockedGroup, seq int64) (Message, error) {
	if err := g.save(ctx, tx); err != nil {
		return Message{}, err
	}
	m, err := messageAt(ctx, tx, g.id, seq)
	if err != nil {
		return Message{}, err
	}
	return m, w.publish(ctx, tx, Change{
		Group: g.id, Number: g.change, Frame: MessageFrame{PushMessage, g.id, g.change, m},
	})
}

// groupChange completes the change of a group, and returns the group as it is now.
func (w Writer) groupChange(ctx context.Context, tx Tx, g *lockedGroup, added, removed []int64) (Group, error) {
	if err := g.save(ctx, tx); err != nil {
		return Group{}, err
	}
	now, err := GroupByID(ctx, tx, g.id)
	if err != nil {
		return Group{}, err
	}
	added, removed = append([]int64{}, added...), append([]int64{}, removed...) // lists in JSON, not null
	return now, w.publish(ctx, tx, Change{
		Group: g.id, Number: g.change, Frame: GroupFrame{PushGroup, g.id, g.change, now, added, removed},
		Audience: append(append([]int64{}, added...), removed...),
	})
}

// publish receives every change that members see.
func (w Writer) publish(ctx context.Context, tx Tx, c Change) error {
	if w.Publish == nil {
		return nil
	}
	return w.Publish(ctx, tx, c)
}
