package chatdb

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Message is one message of a group. Seq is 1, 2, 3 … in each group, without gaps. It
// never changes; Change is the group's change that wrote the message last.
type Message struct {
	ID        string     `json:"id"`
	Seq       int64      `json:"seq"`
	Change    int64      `json:"change"`
	GroupID   string     `json:"group_id"`
	AuthorID  int64      `json:"author_id"`
	Author    string     `json:"author"`
	Text      string     `json:"text"` // empty: deleted
	CreatedAt time.Time  `json:"created_at"`
	EditedAt  *time.Time `json:"edited_at,omitempty"`
	Deleted   bool       `json:"deleted,omitempty"`
	ClientID  string     `json:"client_id,omitempty"` // the key of the request that sent it
}

// Page is a part of a group's messages. Change is the number of a change of the group: the
// messages include their changes up to this number.
type Page struct {
	Messages []Message `json:"messages"`
	Change   int64     `json:"change"`
}

const messageColumns = `
select m.id, m.seq, m.changed, m.group_id, m.author_id, u.name, m.text, m.created_at, m.edited_at, m.deleted, m.client_id
from messages m join users u on u.id = m.author_id `

// MessagesAfter returns at most limit messages of a group whose numbers are greater than
// after, in the order of their numbers.
func MessagesAfter(ctx context.Context, q Querier, group string, after int64, limit int) (Page, error) {
	return readPage(ctx, q, group, `m.seq > $2 order by m.seq limit $3`, after, limit)
}

// MessagesBefore returns the last messages of a group whose numbers are less than before,
// at most limit, in the order of their numbers.
func MessagesBefore(ctx context.Context, q Querier, group string, before int64, limit int) (Page, error) {
	p, err := readPage(ctx, q, group, `m.seq < $2 order by m.seq desc limit $3`, before, limit)
	slices.Reverse(p.Messages)
	return p, err
}

// MessagesChangedAfter returns at most limit messages of a group that were written by a
// change greater than after, in the order of their changes. If there are more, the page's
// Change is the change of its last message. A caller that continues from Change misses
// no message.
func MessagesChangedAfter(ctx context.Context, q Querier, group string, after int64, limit int) (Page, error) {
	last, err := lastChange(ctx, q, group)
	if err != nil {
		return Page{}, err
	}
	// Changes later than the counter are left out. Otherwise Change could be the number
	// of such a change, and the caller would miss an earlier change that is not about a
	// message.
	p, err := readPage(ctx, q, group, `m.changed > $2 and m.changed <= $4 order by m.changed limit $3`, after, limit, last)
	if p.Change = last; len(p.Messages) == limit {
		p.Change = p.Messages[limit-1].Change
	}
	return p, err
}

// readPage reads messages of a group. The counter is read first, so that the messages are
// as new as it is, or newer.
func readPage(ctx context.Context, q Querier, group, where string, args ...any) (Page, error) {
	change, err := lastChange(ctx, q, group)
	if err != nil {
		return Page{}, err
	}
	rows, err := q.Query(ctx, messageColumns+`where m.group_id = $1 and `+where, append([]any{group}, args...)...)
	if err != nil {
		return Page{}, fmt.Errorf("select messages: %w", err)
	}
	messages, err := collect(rows, scanMessage)
	return Page{messages, change}, err
}

func lastChange(ctx context.Context, q Querier, group string) (change int64, err error) {
	if err := q.QueryRow(ctx, `select last_change from groups where id = $1`, group).Scan(&change); err != nil {
		return 0, fmt.Errorf("select last change: %w", err)
	}
	return change, nil
}

// MessageBySending returns the message that an author sent with a key, or
// ErrNotFound.
func MessageBySending(ctx context.Context, q Querier, author int64, key string) (Message, error) {
	return scanMessage(q.QueryRow(ctx,
		messageColumns+`where m.author_id = $1 and m.sending_key = $2`, author, key))
}

// messageAt returns the message with a number, or ErrNotFound.
func messageAt(ctx context.Context, q Querier, group string, seq int64) (Message, error) {
	return scanMessage(q.QueryRow(ctx, messageColumns+`where m.group_id = $1 and m.seq = $2`, group, seq))
}

func scanMessage(row Row) (Message, error) {
	var (
		m                Message
		created, deleted int64
		edited           *int64
	)
	err := row.Scan(&m.ID, &m.Seq, &m.Change, &m.GroupID, &m.AuthorID, &m.Author, &m.Text, &created, &edited, &deleted, &m.ClientID)
	if err != nil {
		return Message{}, fmt.Errorf("read message: %w", err)
	}
	m.CreatedAt, m.Deleted = timeOf(created), deleted != 0
	if edited != nil {
		at := timeOf(*edited)
		m.EditedAt = &at
	}
	return m, nil
}
