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
	// Producer is who has sent it and made its ID. Required. The same ID of
	// another producer is another message.
	Producer string
	// ID is the producer's own name for it, the same in each delivery. Required.
	// Together with the Producer it has at most 240 bytes.
	ID string
	// Sent is when its producer sent it, as the producer says, the same in each
	// delivery; never when a broker delivered it. Required of an [Inbox] that is
	// Stamped, and then part of what names the message, to the millisecond.
	Sent time.Time
	// Payload is what the handler gets. Another payload under the same names is
	// refused.
	Payload In
}

// maxNames leaves room in a key for what joins the names.
const maxNames = 240

// PayloadHash is an ID made from the payload, for producers that give none: 128
// bits of its SHA-256. Two messages that say the same are then one, and only the
// first is ever handled.
func PayloadHash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// key joins the names of m, so that no two messages have the same key. The error
// is a *semel.FieldError.
func (in *Inbox[In]) key(m Message[In]) (string, error) {
	switch {
	case m.Producer == "":
		return "", invalid("Producer", "is required: ids are unique to their producer only")
	case m.ID == "":
		return "", invalid("ID", "is required; say PayloadHash if the payload is to be it")
	case len(m.Producer)+len(m.ID) > maxNames:
		return "", invalid("ID", "has, with the Producer, more than "+strconv.Itoa(maxNames)+" bytes")
	case in.stamped && m.Sent.IsZero():
		return "", invalid("Sent", "is required of an inbox that is Stamped")
	case in.stamped && m.Sent.UnixMilli() < 0:
		return "", invalid("Sent", "is before 1970")
	}
	if in.time != nil {
		if _, ok := in.time(m.ID); !ok {
			return "", invalid("ID", "carries no time, which this inbox asks for")
		}
	}
	names := strconv.Itoa(len(m.Producer)) + ":" + m.Producer + ":" + m.ID
	if in.stamped {
		names = strconv.FormatInt(m.Sent.UnixMilli(), stampBase) + "@" + names
	}
	return names, nil
}

// idOf reads the ID out of a key that is not stamped.
func idOf(key string) (string, bool) {
	digits, names, ok := strings.Cut(key, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= len(names) {
		return "", false
	}
	return names[n+1:], true
}

// stampBase keeps a stamp so short that the longest names have room beside it.
const stampBase = 36

// stampOf reads Sent out of a key that is stamped.
func stampOf(key string) (time.Time, bool) {
	digits, _, ok := strings.Cut(key, "@")
	ms, err := strconv.ParseInt(digits, stampBase, 64)
	return time.UnixMilli(ms), ok && err == nil
}

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }
