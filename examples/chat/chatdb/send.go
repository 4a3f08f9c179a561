package chatdb

import (
	"context"
	"fmt"
)

// NewMessage is the input of Writer.Send.
type NewMessage struct {
	GroupID  string
	AuthorID int64
	Text     string
	// ClientID is the key of the author's request. Empty: the message has none.
	ClientID string
	// Key is stored with the message, so that MessageBySending finds it. It is
	// unique for each author. Empty: no key is stored.
	Key string
	// MarkRead moves the author's read marker to the message.
	MarkRead bool
}

// Send adds a message with the next number of its group. The author must be a member, or
// the server's own user. It locks the group: other transactions cannot add a message
// before this one ends.
func (w Writer) Send(ctx context.Context, tx Tx, n NewMessage) (Message, error) {
	g, err := lockGroup(ctx, tx, n.GroupID, n.AuthorID)
	if err != nil {
		return Message{}, err
	}
	g.seq++
	err = tx.Exec(ctx, `
insert into messages (id, group_id, seq, changed, author_id, text, created_at, client_id, sending_key)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		newID("msg"), g.id, g.seq, g.change, n.AuthorID, n.Text, now().UnixMicro(), n.ClientID, keyColumn(n.Key))
	if err != nil {
		return Message{}, fmt.Errorf("insert message: %w", err)
	}
	if n.MarkRead {
		err := tx.Exec(ctx, `update memberships set read_seq = $3 where group_id = $1 and user_id = $2`, g.id, n.AuthorID, g.seq)
		if err != nil {
			return Message{}, fmt.Errorf("update read marker: %w", err)
		}
	}
	return w.messageChange(ctx, tx, g, g.seq)
}

// Edit replaces the text of a message. Only its author may edit it. A message that was
// deleted is ErrNotFound.
func (w Writer) Edit(ctx context.Context, tx Tx, group string, seq, by int64, text string) (Message, error) {
	g, m, err := lockMessage(ctx, tx, group, seq, by)
	switch {
	case err != nil:
		return Message{}, err
	case m.AuthorID != by:
		return Message{}, ErrNotAuthor
	case m.Deleted:
		return Message{}, fmt.Errorf("edit a deleted message: %w", ErrNotFound)
	case m.Text == text:
		return m, nil
	}
	err = tx.Exec(ctx, `update messages set text = $3, edited_at = $4, changed = $5 where group_id = $1 and seq = $2`,
		group, seq, text, now().UnixMicro(), g.change)
	if err != nil {
		return Message{}, fmt.Errorf("update message: %w", err)
	}
	return w.messageChange(ctx, tx, g, seq)
}

// Delete removes the text of a message and marks it as deleted. Its author and the owner
// of the group may delete it. A message that was deleted stays as it is.
func (w Writer) Delete(ctx context.Context, tx Tx, group string, seq, by int64) (Message, error) {
	g, m, err := lockMessage(ctx, tx, group, seq, by)
	switch {
	case err != nil:
		return Message{}, err
	case m.AuthorID != by && g.owner != by:
		return Message{}, ErrNotAuthor
	case m.Deleted:
		return m, nil
	}
	err = tx.Exec(ctx, `update messages set text = '', deleted = 1, changed = $3 where group_id = $1 and seq = $2`,
		group, seq, g.change)
	if err != nil {
		return Message{}, fmt.Errorf("delete message: %w", err)
	}
	return w.messageChange(ctx, tx, g, seq)
}

// lockMessage locks the group of a message for a change by a member.
func lockMessage(ctx context.Context, tx Tx, group string, seq, by int64) (*lockedGroup, Message, error) {
	g, err := lockGroup(ctx, tx, group, by)
	if err != nil {
		return nil, Message{}, err
	}
	m, err := messageAt(ctx, tx, group, seq)
	return g, m, err
}
