package chatdb

import (
	"context"
	"fmt"
	"time"
)

// Message is one message of a group. Seq is 1, 2, 3 … in each group, without
// gaps.
type Message struct {
	ID        string    `json:"id"`
	Seq       int64     `json:"seq"`
	GroupID   string    `json:"group_id"`
	AuthorID  int64     `json:"author_id"`
	Author    string    `json:"author"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
}

// NewMessage is the input of SendMessageTx.
type NewMessage struct {
	GroupID  string
	AuthorID int64
	Text     string
	// Key is stored with the message, so that MessageBySending finds it. It is
	// unique for each author. Empty: no key is stored.
	Key string
}

const messageColumns = `
select m.id, m.seq, m.group_id, m.author_id, u.name, m.text, m.created_at
from messages m join users u on u.id = m.author_id `

// SendMessageTx adds a message with the next number of its group. It locks the
// group: other transactions cannot add a message before this one ends.
func SendMessageTx(ctx context.Context, tx Tx, n NewMessage) (Message, error) {
	var group string
	lock := `select id from groups where id = $1` + tx.dialect().lockRow
	if err := tx.QueryRow(ctx, lock, n.GroupID).Scan(&group); err != nil {
		return Message{}, fmt.Errorf("lock group: %w", err)
	}
	id := newID("msg")
	err := tx.Exec(ctx, `
insert into messages (id, group_id, seq, author_id, text, created_at, sending_key)
select $1, $2, coalesce(max(seq), 0) + 1, $3, $4, $5, $6 from messages where group_id = $2`,
		id, n.GroupID, n.AuthorID, n.Text, now().UnixMicro(), keyColumn(n.Key))
	if err != nil {
		return Message{}, fmt.Errorf("insert message: %w", err)
	}
	return scanMessage(tx.QueryRow(ctx, messageColumns+`where m.id = $1`, id))
}

// MessageBySending returns the message that an author sent with a key, or
// ErrNotFound.
func MessageBySending(ctx context.Context, q Querier, author int64, key string) (Message, error) {
	return scanMessage(q.QueryRow(ctx,
		messageColumns+`where m.author_id = $1 and m.sending_key = $2`, author, key))
}

// MessagesAfter lists at most limit messages of a group whose numbers are greater
// than after, in order.
func MessagesAfter(ctx context.Context, q Querier, group string, after int64, limit int) ([]Message, error) {
	rows, err := q.Query(ctx,
		messageColumns+`where m.group_id = $1 and m.seq > $2 order by m.seq limit $3`, group, after, limit)
	if err != nil {
		return nil, fmt.Errorf("select messages: %w", err)
	}
	defer rows.Close()
	messages := []Message{}
	for rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return messages, nil
}

func scanMessage(row Row) (Message, error) {
	var (
		m       Message
		created int64
	)
	err := row.Scan(&m.ID, &m.Seq, &m.GroupID, &m.AuthorID, &m.Author, &m.Text, &created)
	if err != nil {
		return Message{}, fmt.Errorf("read message: %w", err)
	}
	m.CreatedAt = timeOf(created)
	return m, nil
}
