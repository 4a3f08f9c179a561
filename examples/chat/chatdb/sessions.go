package chatdb

import (
	"context"
	"fmt"
	"time"
)

// Session is a user's access from one device. It lasts until it is revoked.
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

// OpenSessionTx adds a session with the hash of its token.
func OpenSessionTx(ctx context.Context, tx Tx, user User, device string, tokenHash []byte) (Session, error) {
	open, err := SessionsOf(ctx, tx, user.ID)
	if err != nil {
		return Session{}, err
	}
	for len(open) >= MaxSessions {
		if err := RevokeSessionTx(ctx, tx, user.ID, open[0].ID); err != nil {
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

// SessionByToken returns the session with a token's hash and its user, or ErrNotFound.
func SessionByToken(ctx context.Context, q Querier, tokenHash []byte) (Session, error) {
	return scanSession(q.QueryRow(ctx, sessionColumns+`where s.token_hash = $1`, tokenHash))
}

// SessionByID returns a session and its user, or ErrNotFound.
func SessionByID(ctx context.Context, q Querier, id string) (Session, error) {
	return scanSession(q.QueryRow(ctx, sessionColumns+`where s.id = $1`, id))
}

// SessionsOf lists the sessions of a user, oldest first.
func SessionsOf(ctx context.Context, q Querier, user int64) ([]Session, error) {
	rows, err := q.Query(ctx, sessionColumns+`where s.user_id = $1 order by s.created_at, s.id`, user)
	if err != nil {
		return nil, fmt.Errorf("select sessions: %w", err)
	}
	return collect(rows, scanSession)
}

// RevokeSessionTx deletes a session of a user. It does nothing if the user has no such
// session.
func RevokeSessionTx(ctx context.Context, tx Tx, user int64, id string) error {
	if err := tx.Exec(ctx, `delete from sessions where id = $1 and user_id = $2`, id, user); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	return nil
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
