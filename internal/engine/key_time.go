package engine

import (
	"encoding/hex"
	"strings"
	"time"
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
