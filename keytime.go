package semel

import (
	"encoding/hex"
	"strings"
	"time"
)

// UUIDv7Time returns the time in a UUID of version 7 (RFC 9562), for
// OperationOptions.KeyTime.
func UUIDv7Time(key string) (time.Time, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(key) != 36 || len(raw) != 16 || raw[6]>>4 != 7 {
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
	for i, r := range strings.ToUpper(key) {
		digit := strings.IndexRune(alphabet, r)
		if digit < 0 {
			return time.Time{}, false
		}
		if i < 10 {
			ms = ms<<5 | int64(digit)
		}
	}
	return time.UnixMilli(ms), true
}
