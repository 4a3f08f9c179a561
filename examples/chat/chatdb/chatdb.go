// Package chatdb keeps the chat's own tables: users, groups, memberships and
// messages. It knows nothing of idempotency but the two columns that let a
// lost outcome be found again.
//
// Functions that end in Tx join the caller's transaction and leave its end to
// the caller.
package chatdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNotFound says that there is no such row.
var ErrNotFound = errors.New("chatdb: not found")

// MigrateTx creates what is missing of the tables.
func MigrateTx(ctx context.Context, tx Tx) error {
	if err := tx.Exec(ctx, tx.dialect().schema); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

// newID draws an identifier that nobody can guess.
func newID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// now is rounded to what a column keeps, so that a row read back renders as the
// row written did.
func now() time.Time { return time.UnixMicro(time.Now().UnixMicro()).UTC() }

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// keyColumn is a nullable key.
func keyColumn(key string) *string {
	if key == "" {
		return nil
	}
	return &key
}
