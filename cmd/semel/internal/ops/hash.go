package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/spf13/cobra"
)

// salt is the random bytes that the database stores for its hashes of scopes
// and keys.
type salt []byte

// hash returns the hash of a scope or a key, as the view semel_record_view
// does. Twelve digits are enough to distinguish values, and without the salt a
// reader cannot test guesses.
func (s salt) hash(value string) string {
	h := sha256.New()
	h.Write(s)
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// withRecords is withDB for the commands that print records. It reads the salt
// before fn changes anything; otherwise an error could be reported although the
// change was made.
func withRecords(c *cobra.Command, fn func(ctx context.Context, db *database) error) error {
	return withDB(c, func(ctx context.Context, db *database) (err error) {
		if db.salt, err = db.readSalt(ctx); err != nil {
			return err
		}
		return fn(ctx, db)
	})
}
