package semel

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

// UUIDv7Time returns the time in a UUID of version 7 (RFC 9562), for
// OperationOptions.KeyTime.
func UUIDv7Time(key string) (time.Time, bool) {
	if len(key) != 36 || key[8] != '-' || key[13] != '-' || key[18] != '-' || key[23] != '-' {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range raw[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), true
}

// ULIDTime returns the time in a ULID, for OperationOptions.KeyTime.
func ULIDTime(key string) (time.Time, bool) {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(key) != 26 || key[0] > '7' {
		return time.Time{}, false
	}
	var ms int64
	for i := range len(key) {
		c := key[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		digit := strings.IndexByte(alphabet, c)
		if digit < 0 {
			return time.Time{}, false
		}
		if i < 10 {
			ms = ms<<5 | int64(digit)
		}
	}
	return time.UnixMilli(ms), true
}

// timeIn returns the time in a key, and the zero time if the operation has no
// KeyTime.
func (o *operation) timeIn(key string) (time.Time, bool) {
	if o.keyTime == nil {
		return time.Time{}, true
	}
	return o.keyTime(key)
}

// RecordIDs returns the possible IDs of a key's record when the operation's KeyTime
// is not known: the ID of a key without a time, and the ID of a UUIDv7 or ULID. It
// is for tools; an engine that was given the operation knows the ID.
func RecordIDs(operation string, scope Scope, key string) []store.ID {
	ids := []store.ID{store.NewID(operation, scope.text, key)}
	for _, read := range [...]func(string) (time.Time, bool){UUIDv7Time, ULIDTime} {
		if made, ok := read(key); ok {
			ids = append(ids, store.NewTimedID(operation, scope.text, key, made))
		}
	}
	return ids
}

// recordIDs returns RecordIDs, or the only ID if the engine was given the
// operation.
func (c *Core) recordIDs(operation string, scope Scope, key string) []store.ID {
	if op := c.operationNamed(operation); op != nil {
		if op.generation > 0 {
			_, ids := op.generationAt(c.options.Clock(), scope.text, key)
			return ids[:]
		}
		if op.keyTime != nil {
			made, ok := op.timeIn(key)
			switch {
			case !ok:
				return nil
			case !made.IsZero():
				return []store.ID{store.NewTimedID(operation, scope.text, key, made)}
			}
			return []store.ID{store.NewID(operation, scope.text, key)}
		}
	}
	return RecordIDs(operation, scope, key)
}
