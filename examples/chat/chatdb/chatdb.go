// Package chatdb stores the chat's own data: users, sessions, groups, memberships and
// messages. It knows nothing about idempotency, except for three columns with keys
// by which a lost outcome can be found.
//
// Functions whose names end in Tx run in the caller's transaction. The caller
// commits it.
package chatdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNotFound means that there is no such row.
var ErrNotFound = errors.New("chatdb: not found")

// MigrateTx creates the tables that are missing, and gives a new database its ID.
func MigrateTx(ctx context.Context, tx Tx) error {
	for _, statement := range tx.dialect().schema {
		if err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	_, err := DatabaseID(ctx, tx)
	if errors.Is(err, ErrNotFound) {
		err = tx.Exec(ctx, tx.dialect().insertNew+` deployment (one, id) values (1, $1)`+tx.dialect().orNothing, newID("db"))
	}
	return err
}

// DatabaseID returns the random ID of the database, which all its servers share. A copy of the
// database has the same ID.
func DatabaseID(ctx context.Context, q Querier) (id string, err error) {
	if err = q.QueryRow(ctx, `select id from deployment where one = 1`).Scan(&id); err != nil {
		err = fmt.Errorf("select the database's ID: %w", err)
	}
	return id, err
}

// newID returns a random identifier that cannot be guessed.
func newID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// now is rounded to microseconds, the precision of the columns, so that a row
// looks the same when it is read again.
func now() time.Time { return time.UnixMicro(time.Now().UnixMicro()).UTC() }

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// keyColumn returns NULL for an empty key.
func keyColumn(key string) *string {
	if key == "" {
		return nil
	}
	return &key
}
