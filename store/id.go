package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// ID names a record. It is a digest of the record's operation, scope and key,
// and with a time in the key, that time before it. It shows nothing else of the
// key, so it may be logged, unless operation, scope and key can be guessed together:
// there is no secret in the digest, and a guess can be confirmed.
//
// The first bit tells the two kinds apart. IDs without a time sort before all
// that have one, and those by their time, so a table can be divided by ranges of
// IDs, and a key finds its part.
type ID [16]byte

// timedBit is the first bit of an ID with a time in it.
const timedBit = 0x80

// NewID returns the ID of an operation's key within a scope: 127 bits of the
// SHA-256 of the three, each preceded by its length.
func NewID(operation, scope, key string) ID {
	sum := digest(operation, scope, key)
	id := ID(sum[:16])
	id[0] &^= timedBit
	return id
}

// NewTimedID returns the ID of a key that carries a time: 47 bits of
// milliseconds since 1970, and 80 bits of the digest. What is before 1970 or
// after the year 6429 has the first or the last of these times. The same key
// must always come with the same time.
func NewTimedID(operation, scope, key string, at time.Time) ID {
	id := FirstID(at)
	sum := digest(operation, scope, key)
	copy(id[6:], sum[:])
	return id
}

// maxMilli is the last time an ID can have.
const maxMilli = 1<<47 - 1

// FirstID returns the first of all IDs with that time, in milliseconds, or a
// later one: where a partition by time begins.
func FirstID(at time.Time) ID {
	var id ID
	ms := uint64(max(0, min(at.UnixMilli(), maxMilli)))
	binary.BigEndian.PutUint64(id[:8], ms<<16)
	id[0] |= timedBit
	return id
}

// Time returns the time that NewTimedID put into id, in UTC and to the
// millisecond; false if it has none.
func (id ID) Time() (time.Time, bool) {
	if id[0]&timedBit == 0 {
		return time.Time{}, false
	}
	ms := binary.BigEndian.Uint64(id[:8]) >> 16 & maxMilli
	return time.UnixMilli(int64(ms)).UTC(), true
}

// String returns id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads an ID as String writes it: 32 hexadecimal digits, in lower or
// upper case. The error names the text.
func ParseID(text string) (ID, error) {
	var id ID
	digits, err := hex.DecodeString(text)
	if err != nil || len(digits) != len(id) {
		return ID{}, fmt.Errorf("%q is not a record ID: want %d hexadecimal digits", text, 2*len(id))
	}
	copy(id[:], digits)
	return id, nil
}

// digest is the SHA-256 of the parts, each preceded by its length, so that no
// two lists of parts are the same text.
func digest(parts ...string) [sha256.Size]byte {
	buf := make([]byte, 0, 128)
	for _, part := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(part)))
		buf = append(buf, part...)
	}
	return sha256.Sum256(buf)
}
