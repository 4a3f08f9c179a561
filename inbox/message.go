package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel"
)

// Message is one delivery of a message.
type Message[In any] struct {
	// Producer identifies the sender that chose the ID. Required. The same ID
	// from another producer is another message.
	Producer string
	// ID is the producer's identifier of the message, the same in each
	// delivery. Required. ID and Producer together have at most 240 bytes.
	ID string
	// Sent is the time at which the producer sent the message, as the producer
	// states it. It must be the same in each delivery, so it is never the time
	// of the delivery. Required if the [Inbox] is Stamped; it is then part of
	// the message's identity, to the millisecond.
	Sent time.Time
	// Payload is the input of the handler. A delivery with the same identity
	// and another payload is rejected.
	Payload In
}

// maxNames leaves room in a key for the separators between the names.
const maxNames = 240

// PayloadHash returns an ID made from the payload, for producers that send no
// IDs: 128 bits of its SHA-256. Two messages with the same payload are then one
// message, and only the first is handled.
func PayloadHash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// key joins the producer, the ID and the time of m in such a way that no two
// messages have the same key. The error is a *semel.FieldError.
func (in *Inbox[In]) key(m Message[In]) (string, error) {
	switch {
	case m.Producer == "":
		return "", invalid("Producer", "is required: an ID is unique only within its producer")
	case m.ID == "":
		return "", invalid("ID", "is required; use PayloadHash if the payload identifies the message")
	case len(m.Producer)+len(m.ID) > maxNames:
		return "", invalid("ID", "has, with the Producer, more than "+strconv.Itoa(maxNames)+" bytes")
	case in.stamped && m.Sent.IsZero():
		return "", invalid("Sent", "is required by an inbox that is Stamped")
	case in.stamped && m.Sent.UnixMilli() < 0:
		return "", invalid("Sent", "is before 1970")
	}
	if in.time != nil {
		if _, ok := in.time(m.ID); !ok {
			return "", invalid("ID", "contains no time, which this inbox requires")
		}
	}
	names := strconv.Itoa(len(m.Producer)) + ":" + m.Producer + ":" + m.ID
	if in.stamped {
		names = strconv.FormatInt(m.Sent.UnixMilli(), stampBase) + "@" + names
	}
	return names, nil
}

// idOf returns the ID from a key without a time stamp.
func idOf(key string) (string, bool) {
	digits, names, ok := strings.Cut(key, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= len(names) {
		return "", false
	}
	return names[n+1:], true
}

// stampBase is the base of a time stamp's digits. It keeps the stamp short
// enough for the longest names.
const stampBase = 36

// stampOf returns Sent from a key with a time stamp.
func stampOf(key string) (time.Time, bool) {
	digits, _, ok := strings.Cut(key, "@")
	ms, err := strconv.ParseInt(digits, stampBase, 64)
	return time.UnixMilli(ms), ok && err == nil
}

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }
