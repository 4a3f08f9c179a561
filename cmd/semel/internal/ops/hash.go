package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/spf13/cobra"
)

// salt is the random bytes that the database keeps for its hashes of scopes and keys.
type salt []byte

// hash is how a scope or a key is shown, here and in the view semel_record_view: twelve
// digits are enough to tell two apart, and a reader without the salt cannot try values.
func (s salt) hash(value string) string {
	h := sha256.New()
	h.Write(s)
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// withRecords is withDB for the commands that show records. The salt is read before
// anything is changed, so that a change is not reported as an error afterwards.
func withRecords(c *cobra.Command, fn func(ctx context.Context, db *database) error) error {
	return withDB(c, func(ctx context.Context, db *database) (err error) {
		if db.salt, err = db.readSalt(ctx); err != nil {
			return err
		}
		return fn(ctx, db)
	})
}
