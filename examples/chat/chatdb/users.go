package chatdb

import (
	"context"
	"errors"
	"fmt"
)

// User can own groups and send messages.
type User struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// NewUser is the input of AddUserTx.
type NewUser struct {
	Name         string
	NameKey      string // the normalised name: no two users have the same one
	PasswordHash string
	// Key is stored with the user, so that UserBySignUp finds it. It is unique. Empty: no
	// key is stored.
	Key string
}

// ErrNameTaken means that another user has the name.
var ErrNameTaken = errors.New("chatdb: the name is taken")

// AddUserTx adds a user, or returns ErrNameTaken.
func AddUserTx(ctx context.Context, tx Tx, n NewUser) (User, error) {
	u := User{Name: n.Name}
	insert := tx.dialect().insertNew +
		` users (name, name_key, password_hash, created_at, sign_up_key) values ($1, $2, $3, $4, $5)` +
		tx.dialect().orNothing + ` returning id`
	err := tx.QueryRow(ctx, insert, n.Name, n.NameKey, n.PasswordHash, now().UnixMicro(), keyColumn(n.Key)).Scan(&u.ID)
	if errors.Is(err, ErrNotFound) {
		return User{}, ErrNameTaken
	}
	if err != nil {
		return User{}, fmt.Errorf("insert user: %w", err)
	}
	return u, nil
}

// UserByID returns a user, or ErrNotFound.
func UserByID(ctx context.Context, q Querier, id int64) (User, error) {
	return scanUser(q.QueryRow(ctx, `select id, name from users where id = $1`, id))
}

// UserBySignUp returns the user that was added with a key, or ErrNotFound.
func UserBySignUp(ctx context.Context, q Querier, key string) (User, error) {
	return scanUser(q.QueryRow(ctx, `select id, name from users where sign_up_key = $1`, key))
}

// Credentials returns a user and the hash of the user's password, or ErrNotFound.
func Credentials(ctx context.Context, q Querier, nameKey string) (u User, passwordHash string, err error) {
	err = q.QueryRow(ctx, `select id, name, password_hash from users where name_key = $1 and id > 0`, nameKey).
		Scan(&u.ID, &u.Name, &passwordHash)
	if err != nil {
		return User{}, "", fmt.Errorf("select credentials: %w", err)
	}
	return u, passwordHash, nil
}

// UsersByPrefix lists at most limit users whose normalised names begin with prefix, in
// the order of these names.
func UsersByPrefix(ctx context.Context, q Querier, prefix string, limit int) ([]User, error) {
	const last = "\U0010FFFF" // a name cannot have this character
	rows, err := q.Query(ctx, `
select id, name from users where name_key >= $1 and name_key < $2 and id > 0 order by name_key limit $3`,
		prefix, prefix+last, limit)
	if err != nil {
		return nil, fmt.Errorf("select users: %w", err)
	}
	return collect(rows, func(row Row) (User, error) { return scanUser(row) })
}

func scanUser(row Row) (User, error) {
	var u User
	if err := row.Scan(&u.ID, &u.Name); err != nil {
		return User{}, fmt.Errorf("select user: %w", err)
	}
	return u, nil
}

// collect reads all rows and closes them. It never returns a nil slice without an error.
func collect[T any](rows Rows, scan func(Row) (T, error)) ([]T, error) {
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return all, nil
}
