package engine

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/callerr"
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
	return time.UnixMilli(int64(binary.BigEndian.Uint64(raw) >> 16)), true
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

// A key without a time can be stored by generations, which are spans of time. Its
// outcome is written twice in one transaction: under the ID of the current
// generation and, as its successor, under the ID of the next. Two concurrent callers
// whose clocks are in successive generations share one of these IDs, so only one of
// them can commit. It would not be enough to read the previous generation and to
// write the current one: a caller that is late in the previous generation may not
// have committed yet.

// minGeneration is the shortest generation. Calls of one generation must have ended
// when the generation after the next begins.
const minGeneration = time.Minute

// generations validates the Generation of an operation.
func (o *operation) generations() error {
	switch {
	case o.generation == 0:
		return nil
	case o.generation < minGeneration:
		return callerr.Invalid("Generation", "must be a minute or longer: callers' clocks must differ by less")
	case o.keyTime != nil:
		return callerr.Invalid("Generation", "is for keys without a time, and KeyTime reads one")
	case o.retention != 0:
		return callerr.Invalid("Generation", "sets how long records are kept; do not set Retention")
	case !o.inline:
		return callerr.Invalid("Generation", "is for operations that DoTx runs as one transaction")
	case o.onError == Keep || o.retry != nil:
		return callerr.Invalid("Generation", "stores no failures; do not set OnError or Retry")
	}
	o.retention = 2 * o.generation
	return nil
}

// notByGeneration refuses operations with a Generation.
func (c *Call) notByGeneration() error {
	if c.op.generation > 0 {
		return callerr.Invalid("Generation", "is for DoTx, which writes two records")
	}
	return nil
}

// generationAt returns the number of the generation of a time, and the key's IDs in
// it and in the next.
func (o *operation) generationAt(at time.Time, scope, key string) (n int64, ids [2]store.ID) {
	length := o.generation.Milliseconds()
	if n = at.UnixMilli() / length; at.UnixMilli() < 0 {
		n = 0
	}
	for i := range ids {
		start := time.UnixMilli((n + int64(i)) * length)
		ids[i] = store.NewTimedID(o.name, scope, key, start)
	}
	return n, ids
}
