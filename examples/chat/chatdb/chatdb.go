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

// MigrateTx creates the tables that are missing.
func MigrateTx(ctx context.Context, tx Tx) error {
	for _, statement := range tx.dialect().schema {
		if err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	return nil
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
