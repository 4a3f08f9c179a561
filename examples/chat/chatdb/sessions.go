package chatdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Session is a user's access from one device. It lasts until it is revoked, or too old.
type Session struct {
	ID        string    `json:"id"`
	Device    string    `json:"device"`
	CreatedAt time.Time `json:"created_at"`
	User      User      `json:"-"`
}

// MaxSessions is how many sessions a user may have. A further one replaces the oldest.
const MaxSessions = 50

const sessionColumns = `
select s.id, s.device, s.created_at, u.id, u.name from sessions s join users u on u.id = s.user_id `

// OpenSession adds a session with the hash of its token.
func (w Writer) OpenSession(ctx context.Context, tx Tx, user User, device string, tokenHash []byte) (Session, error) {
	open, err := SessionsOf(ctx, tx, user.ID, time.Time{})
	if err != nil {
		return Session{}, err
	}
	for len(open) >= MaxSessions {
		if err := w.RevokeSession(ctx, tx, user.ID, open[0].ID); err != nil {
			return Session{}, err
		}
		open = open[1:]
	}
	s := Session{ID: newID("ses"), Device: device, CreatedAt: now(), User: user}
	err = tx.Exec(ctx, `insert into sessions (id, user_id, token_hash, device, created_at) values ($1, $2, $3, $4, $5)`,
		s.ID, user.ID, tokenHash, device, s.CreatedAt.UnixMicro())
	if err != nil {
		return Session{}, fmt.Errorf("insert session: %w", err)
	}
	return s, nil
}

// SessionByToken returns the session with a token's hash and its user, or ErrNotFound. It
// must have been opened after the given time, as those of the functions below.
func SessionByToken(ctx context.Context, q Querier, tokenHash []byte, after time.Time) (Session, error) {
	return scanSession(q.QueryRow(ctx, sessionColumns+`where s.token_hash = $1 and s.created_at > $2`, tokenHash, after.UnixMicro()))
}

// SessionByID returns a session and its user, or ErrNotFound.
func SessionByID(ctx context.Context, q Querier, id string, after time.Time) (Session, error) {
	return scanSession(q.QueryRow(ctx, sessionColumns+`where s.id = $1 and s.created_at > $2`, id, after.UnixMicro()))
}

// SessionsOf lists the sessions of a user, oldest first.
func SessionsOf(ctx context.Context, q Querier, user int64, after time.Time) ([]Session, error) {
	rows, err := q.Query(ctx, sessionColumns+`where s.user_id = $1 and s.created_at > $2 order by s.created_at, s.id`, user, after.UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("select sessions: %w", err)
	}
	return collect(rows, scanSession)
}

// OpenSessions returns those of the IDs that sessions have, in any order.
func OpenSessions(ctx context.Context, q Querier, ids []string, after time.Time) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args, places := []any{after.UnixMicro()}, make([]string, len(ids))
	for i, id := range ids {
		args = append(args, id)
		places[i] = fmt.Sprint("$", i+2)
	}
	rows, err := q.Query(ctx, `select id from sessions where created_at > $1 and id in (`+strings.Join(places, ", ")+`)`, args...)
	if err != nil {
		return nil, fmt.Errorf("select open sessions: %w", err)
	}
	return collect(rows, func(row Row) (id string, err error) {
		return id, row.Scan(&id)
	})
}

// RevokeSession deletes a session of a user. It does nothing if the user has no such
// session.
func (w Writer) RevokeSession(ctx context.Context, tx Tx, user int64, id string) error {
	err := tx.QueryRow(ctx, `delete from sessions where id = $1 and user_id = $2 returning id`, id, user).Scan(&id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("delete session: %w", err)
	case w.Revoked == nil:
		return nil
	}
	return w.Revoked(ctx, tx, user, id)
}

func scanSession(row Row) (Session, error) {
	var (
		s       Session
		created int64
	)
	if err := row.Scan(&s.ID, &s.Device, &created, &s.User.ID, &s.User.Name); err != nil {
		return Session{}, fmt.Errorf("select session: %w", err)
	}
	s.CreatedAt = timeOf(created)
	return s, nil
}
