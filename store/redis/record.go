package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// Positions in a record, as functions.lua describes it.
const (
	tokenSize   = 13
	atDue       = tokenSize
	atExpire    = atDue + 8
	atCreated   = atExpire + 8
	atChanged   = atCreated + 8
	atFlags     = atChanged + 8
	atPriority  = atFlags + 1
	atOperation = atPriority + 1
)

// flagTainted is a flag of a record.
const flagTainted = 1

// Flags of a change.
const (
	changeIfDue = 1 << iota
	changeExpires
	changeTainted
	changeInput
	changeOutcome
)

// zeroPriority is priority zero, because priorities are stored without a sign.
const zeroPriority = 128

var errRecord = errors.New("a record has another form")

func appendToken(b []byte, t store.Token) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(t.State)), t.Attempt)
	return binary.BigEndian.AppendUint64(b, t.Owner)
}

func readToken(v string) store.Token {
	b := []byte(v[:tokenSize])
	return store.Token{State: store.State(b[0]), Attempt: binary.BigEndian.Uint32(b[1:]), Owner: binary.BigEndian.Uint64(b[5:])}
}

func appendMicros(b []byte, d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(float64(d.Microseconds())))
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// changeArgs appends the arguments of a change.
func changeArgs(args []any, c *store.Change) []any {
	to := &c.To
	var flags byte
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(changeIfDue, c.IfDue)
	set(changeExpires, to.Expire != 0 && !to.State.Unfinished())
	set(changeTainted, to.Tainted)
	set(changeInput, to.Input != nil)
	set(changeOutcome, to.Outcome != nil)
	head := appendToken(make([]byte, 0, tokenSize+2*8+1), to.Token)
	head = append(appendMicros(appendMicros(head, to.Due), to.Expire), flags)
	var from, identity []byte
	if c.If == (store.Token{}) {
		identity = append(identity, byte(int(to.Priority)+zeroPriority))
		for _, text := range []string{to.Operation, to.Scope, to.Key, string(to.Fingerprint)} {
			identity = appendText(identity, text)
		}
	} else {
		from = appendToken(nil, c.If)
	}
	return append(args, to.ID[:], from, head, identity, notNil(to.Input), notNil(to.Outcome))
}

// notNil returns b for the client, which refuses a nil slice.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// clock is the time of the server in the first element of a result, in microseconds.
func clock(out []any) (float64, error) {
	if len(out) > 0 {
		if now, ok := out[0].(int64); ok {
			return float64(now), nil
		}
	}
	return 0, errors.New("a result has no time")
}

// readRecord reads a record with durations relative to now.
func readRecord(id store.ID, v string, now float64) (*store.Record, error) {
	if len(v) < atOperation {
		return nil, fmt.Errorf("%s: %w", id, errRecord)
	}
	r := &store.Record{
		ID: id, Token: readToken(v), Priority: int8(int(v[atPriority]) - zeroPriority), Tainted: v[atFlags]&flagTainted != 0,
		Age: micros(now - timeAt(v, atCreated)), Since: micros(now - timeAt(v, atChanged)),
	}
	if due := timeAt(v, atDue); due != 0 {
		r.Due = micros(due - now)
	}
	if expire := timeAt(v, atExpire); expire != 0 {
		r.Expire = micros(expire - now)
		if r.Expire == 0 { // an Expire of zero means never
			r.Expire = -1
		}
	}
	rest := v[atOperation:]
	var fingerprint, input string
	for _, text := range []*string{&r.Operation, &r.Scope, &r.Key, &fingerprint, &input} {
		if len(rest) < 4 {
			return nil, fmt.Errorf("%s: %w", id, errRecord)
		}
		n := int(binary.BigEndian.Uint32([]byte(rest[:4])))
		if rest = rest[4:]; n > len(rest) {
			return nil, fmt.Errorf("%s: %w", id, errRecord)
		}
		*text, rest = rest[:n], rest[n:]
	}
	r.Fingerprint, r.Input, r.Outcome = []byte(fingerprint), []byte(input), []byte(rest)
	return r, nil
}

// readRecords reads pairs of an ID and a record.
func readRecords(pairs []any, now float64) ([]store.Record, error) {
	records := make([]store.Record, 0, len(pairs)/2)
	for ; len(pairs) > 1; pairs = pairs[2:] {
		id, err := readID(pairs[0])
		if err != nil {
			return nil, err
		}
		v, _ := pairs[1].(string)
		r, err := readRecord(id, v, now)
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, nil
}

func readID(v any) (store.ID, error) {
	text, _ := v.(string)
	if len(text) != len(store.ID{}) {
		return store.ID{}, fmt.Errorf("an ID has %d bytes", len(text))
	}
	return store.ID([]byte(text)), nil
}

// timeAt returns a time in a record, in microseconds; 0: none.
func timeAt(v string, at int) float64 {
	return math.Float64frombits(binary.BigEndian.Uint64([]byte(v[at : at+8])))
}

// micros returns n microseconds, at most the longest duration.
func micros(n float64) time.Duration {
	const most = float64(math.MaxInt64 / int64(time.Microsecond))
	return time.Duration(max(-most, min(n, most))) * time.Microsecond
}
