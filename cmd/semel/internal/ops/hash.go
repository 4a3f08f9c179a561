package ops

import (
	"crypto/sha256"
	"encoding/hex"
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
