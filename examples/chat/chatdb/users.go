package chatdb

import (
	"context"
	"fmt"
)

// User is somebody who may own groups and send messages.
type User struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// AddUserTx adds a user who is recognised by the hash of a token.
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

// UserByToken finds a user by the hash of their token, or says ErrNotFound.
func UserByToken(ctx context.Context, q Querier, tokenHash []byte) (User, error) {
	return scanUser(q.QueryRow(ctx, `select id, name from users where token_hash = $1`, tokenHash))
}

// UserByID finds a user, or says ErrNotFound.
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
