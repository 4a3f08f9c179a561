package semel

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
)

// A stored fingerprint is one byte for the algorithm, one for the version of
// the operation's own choice of fields, and the digest.
const (
	fingerprintJSON = 1 // SHA-256 of the chosen fields as encoding/json writes them; of a Raw, of its bytes
	fingerprintSize = 2 + sha256.Size
)

// version is the operation's current choice of fields: 0 for the whole input,
// else the number of Fingerprints.
func (o *Operation[In]) version() int { return len(o.fingerprints) }

func (o *Operation[In]) digest(version int, in In) ([]byte, error) {
	var fields any = in
	switch {
	case version > len(o.fingerprints):
		return nil, fmt.Errorf("fingerprint version %d is newer than this program", version)
	case version > 0:
		fields = o.fingerprints[version-1](in)
	}
	text, raw := fields.(Raw)
	if !raw {
		var err error
		if text, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("marshal input: %w", err)
		}
	}
	sum := sha256.Sum256(text)
	return append([]byte{fingerprintJSON, byte(version)}, sum[:]...), nil
}

// same tells whether a stored fingerprint is of this request, computing it the
// way it was computed when it was stored. What this program cannot compute is
// not the same: it refuses rather than guesses.
func (c Call) same(stored []byte) bool {
	if subtle.ConstantTimeCompare(stored, c.fingerprint) == 1 {
		return true
	}
	if len(stored) != fingerprintSize || stored[0] != fingerprintJSON || stored[1] == c.fingerprint[1] {
		return false
	}
	older, err := c.digest(int(stored[1]))
	return err == nil && subtle.ConstantTimeCompare(stored, older) == 1
}
