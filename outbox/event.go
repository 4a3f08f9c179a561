package outbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// The limits of an event.
const (
	// MaxName is the largest number of bytes of a Topic, an Aggregate and a Type.
	MaxName = 255
	// MaxPayload is the largest Payload, in bytes.
	MaxPayload = 1 << 20
	// MaxHeaders is the largest size of the Headers as JSON, in bytes.
	MaxHeaders = 64 << 10
)

// Event is what a transaction publishes.
type Event struct {
	// Topic is where the event is published: the topic, the exchange or the subject of
	// the broker. It has 1 to 255 bytes. Like the other names and the headers it is valid
	// UTF-8 without NUL; it neither begins nor ends with a space.
	Topic string
	// Aggregate is the entity that the event is about, such as the ID of an order. Events
	// with equal Topic and Aggregate are published in order. It has 1 to 255 bytes.
	Aggregate string
	// Type is the kind of the event, such as OrderPlaced. It has 1 to 255 bytes.
	Type string
	// Payload is the body, of at most 1 MiB.
	Payload []byte
	// Headers are for the receiver, with at most 64 KiB as JSON. If the engine has a Tracer,
	// the headers of the trace are added, so that publisher and receiver can continue it.
	Headers map[string]string
}

// AppendTx appends events in tx, in their order. They are published after tx has
// committed, and never if it is rolled back. tx is a transaction of the caller, or that of
// a function of [semel.DoTx] or [semel.InTx]: a replay runs no function, so it appends
// nothing.
//
// A relay of e in this process is woken when the transaction of DoTx or InTx has ended.
// After the commit of a transaction of the caller, call [Kick]; without it, and in other
// processes, the events wait for the next poll.
//
// An event outside of the limits is a *semel.FieldError that names the field; nothing was
// appended then. Any other error is the database's, and tx decides.
func AppendTx[Tx any](ctx context.Context, e *semel.Engine[Tx], tx Tx, events ...Event) error {
	table := adapter.OutboxOf(e)
	if table == nil {
		return errNoOutbox
	}
	trace := adapter.InjectTrace(ctx, e)
	rows := make([]store.OutboxEvent, len(events))
	var lanes uint64
	for i := range events {
		row, err := events[i].row(trace)
		if err != nil {
			return err
		}
		rows[i], lanes = row, lanes|1<<row.Lane
	}
	if len(rows) == 0 {
		return nil
	}
	if err := table.In(tx).Append(ctx, rows); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	adapter.AfterTx(ctx, e, func() { relays.kick(e, lanes) })
	return nil
}

var errNoOutbox = invalid("store", "has no outbox: use that of SQLite, PostgreSQL or MariaDB")

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }

// row checks the event and returns what is stored: with the headers of a trace, if there is
// room for them.
func (e *Event) row(trace map[string]string) (r store.OutboxEvent, err error) {
	for _, f := range []struct{ field, value string }{{"Topic", e.Topic}, {"Aggregate", e.Aggregate}, {"Type", e.Type}} {
		if why := nameFault(f.value); why != "" {
			return r, invalid("Event."+f.field, why)
		}
	}
	if n := len(e.Payload); n > MaxPayload {
		return r, invalid("Event.Payload", fmt.Sprintf("has %d bytes, of which %d are allowed", n, MaxPayload))
	}
	headers := []byte("{}")
	for name, value := range e.Headers {
		if name == "" || !isText(name) || !isText(value) {
			return r, invalid("Event.Headers", "has an empty name, or a text with NUL or of invalid UTF-8")
		}
	}
	if len(e.Headers) > 0 {
		headers, _ = json.Marshal(e.Headers) // strings never fail
	}
	if n := len(headers); n > MaxHeaders {
		return r, invalid("Event.Headers", fmt.Sprintf("has %d bytes as JSON, of which %d are allowed", n, MaxHeaders))
	}
	if len(trace) > 0 {
		all := maps.Clone(trace)
		maps.Copy(all, e.Headers) // the caller's own are kept
		if text, _ := json.Marshal(all); len(text) <= MaxHeaders {
			headers = text
		}
	}
	payload := e.Payload
	if payload == nil {
		payload = []byte{}
	}
	return store.OutboxEvent{
		Lane: laneOf(e.Topic, e.Aggregate), ID: newID(),
		Topic: e.Topic, Aggregate: e.Aggregate, Type: e.Type, Payload: payload, Headers: string(headers),
	}, nil
}

func nameFault(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > MaxName:
		return fmt.Sprintf("has %d bytes, of which %d are allowed", len(s), MaxName)
	case !isText(s):
		return "has NUL or invalid UTF-8"
	case strings.TrimSpace(s) != s:
		return "begins or ends with a space"
	default:
		return ""
	}
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// laneOf returns the lane of an aggregate. Rows keep it, so it must never change.
func laneOf(topic, aggregate string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(topic + "\x00" + aggregate)) // never fails
	sum := h.Sum64()
	return int((sum ^ sum>>32) % store.OutboxLanes)
}

// newID returns a UUIDv7, whose time is for people who read it. Order comes from the
// position of the row.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])       // never fails
	ms := time.Now().UnixMilli() //nolint:forbidigo // see above
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
