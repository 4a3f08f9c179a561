package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// ID identifies a record. It is a digest of the record's operation, scope and key;
// if the key carries a time, the ID begins with that time. It reveals nothing else
// about the key, so it may be logged, unless operation, scope and key can be
// guessed together: the digest contains no secret, so a guess can be confirmed.
//
// The first bit distinguishes the two kinds. IDs without a time sort before all IDs
// with one, and those sort by time. So a table can be partitioned by ranges of IDs.
type ID [16]byte

// timedBit is the first bit of an ID with a time.
const timedBit = 0x80

// NewID returns the ID of an operation's key within a scope: 127 bits of the
// SHA-256 of the three, each preceded by its length.
func NewID(operation, scope, key string) ID {
	sum := digest(operation, scope, key)
	id := ID(sum[:16])
	id[0] &^= timedBit
	return id
}

// NewTimedID returns the ID of a key that carries a time: 47 bits of milliseconds
// since 1970, and 80 bits of the digest. A time before 1970, or after the year
// 6429, becomes the first or the last of these times. A key must always have the
// same time.
func NewTimedID(operation, scope, key string, at time.Time) ID {
	id := FirstID(at)
	sum := digest(operation, scope, key)
	copy(id[6:], sum[:])
	return id
}

// maxMilli is the last time of an ID.
const maxMilli = 1<<47 - 1

// FirstID returns the least ID with a time of at least at, in milliseconds: the
// start of a partition.
func FirstID(at time.Time) ID {
	var id ID
	ms := uint64(max(0, min(at.UnixMilli(), maxMilli)))
	binary.BigEndian.PutUint64(id[:8], ms<<16)
	id[0] |= timedBit
	return id
}

// Time returns the time of NewTimedID, in UTC with a precision of a millisecond;
// false if the ID has none.
func (id ID) Time() (time.Time, bool) {
	if id[0]&timedBit == 0 {
		return time.Time{}, false
	}
	ms := binary.BigEndian.Uint64(id[:8]) >> 16 & maxMilli
	return time.UnixMilli(int64(ms)).UTC(), true
}

// String returns id as 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID parses an ID in the form of String: 32 hexadecimal digits, lower or upper
// case. The error contains the text.
func ParseID(text string) (ID, error) {
	var id ID
	digits, err := hex.DecodeString(text)
	if err != nil || len(digits) != len(id) {
		return ID{}, fmt.Errorf("%q is not a record ID: want %d hexadecimal digits", text, 2*len(id))
	}
	copy(id[:], digits)
	return id, nil
}

// digest is the SHA-256 of the parts, each preceded by its length, so that
// different lists have different digests.
func digest(parts ...string) [sha256.Size]byte {
	buf := make([]byte, 0, 128)
	for _, part := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(part)))
		buf = append(buf, part...)
	}
	return sha256.Sum256(buf)
}
