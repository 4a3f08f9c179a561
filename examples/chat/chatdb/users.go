package chatdb

import (
	"context"
	"fmt"
)

// User can own groups and send messages.
type User struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// AddUserTx adds a user with the hash of the user's token.
func AddUserTx(ctx context.Context, tx Tx, name string, tokenHash []byte) (User, error) {
	u := User{Name: name}
	err := tx.QueryRow(ctx,
		`insert into users (name, token_hash, created_at) values ($1, $2, $3) returning id`,
		name, tokenHash, now().UnixMicro()).Scan(&u.ID)
	if err != nil {
		return User{}, fmt.Errorf("insert user: %w", err)
	}
	return u, nil
}

// UserByToken returns the user with a token's hash, or ErrNotFound.
func UserByToken(ctx context.Context, q Querier, tokenHash []byte) (User, error) {
	return scanUser(q.QueryRow(ctx, `select id, name from users where token_hash = $1`, tokenHash))
}

// UserByID returns a user, or ErrNotFound.
func UserByID(ctx context.Context, q Querier, id int64) (User, error) {
	return scanUser(q.QueryRow(ctx, `select id, name from users where id = $1`, id))
}

func scanUser(row Row) (User, error) {
	var u User
	if err := row.Scan(&u.ID, &u.Name); err != nil {
		return User{}, fmt.Errorf("select user: %w", err)
	}
	return u, nil
}
