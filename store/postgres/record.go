package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// reader reads the rows of a result one by one, after columns that are skipped.
type reader struct {
	into []any

	id                    pgtype.UUID
	token                 storedToken
	due, expires          instant
	created, changed, now instant
	operation, scope, key pgtype.DriverBytes // copied before the next row is read
	fingerprint           []byte
	priority              int16
	tainted               bool
	input, outcome        []byte
}

func newReader(skipped int) *reader {
	r := &reader{into: make([]any, skipped, skipped+18)}
	r.into = append(r.into,
		&r.id, &r.token.state, &r.token.attempt, &r.token.owner, &r.due, &r.expires, &r.created, &r.changed, &r.now,
		&r.operation, &r.scope, &r.key, &r.fingerprint, &r.priority, &r.tainted, &r.input, &r.outcome)
	return r
}

func (r *reader) read(row pgx.CollectableRow) (store.Record, error) {
	if err := row.Scan(r.into...); err != nil {
		return store.Record{}, fmt.Errorf("read a row: %w", err)
	}
	record := store.Record{
		ID: r.id.Bytes, Token: r.token.token(),
		Operation: string(r.operation), Scope: string(r.scope), Key: string(r.key),
		Fingerprint: r.fingerprint, Priority: int8(r.priority), Tainted: r.tainted, Input: r.input, Outcome: r.outcome,
	}
	if r.due.there {
		record.Due = micros(r.due.micros - r.now.micros)
	}
	if r.expires.there {
		record.Expire = left(r.expires.micros - r.now.micros)
	}
	record.Age, record.Since = micros(r.now.micros-r.created.micros), micros(r.now.micros-r.changed.micros)
	return record, nil
}

// storedToken is a token with the columns' signed numbers.
type storedToken struct {
	state   int16
	attempt int32
	owner   int64
}

func (t storedToken) token() store.Token {
	return store.Token{State: store.State(t.state), Attempt: uint32(t.attempt), Owner: uint64(t.owner)}
}

func stored(t store.Token) storedToken {
	return storedToken{state: int16(t.State), attempt: int32(t.Attempt), owner: int64(t.Owner)}
}

// instant is a time of the server. None is null.
type instant struct {
	micros int64 // since 2000
	there  bool
}

// ScanBytes scans the eight bytes of timestamptz_send.
func (i *instant) ScanBytes(v []byte) error {
	if *i = (instant{there: v != nil}); i.there {
		i.micros = int64(binary.BigEndian.Uint64(v))
	}
	return nil
}

// left is never zero, because an Expire of zero means never.
func left(n int64) time.Duration {
	if n == 0 {
		return -1
	}
	return micros(n)
}

// micros returns n microseconds, at most the longest duration.
func micros(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-most, min(n, most))) * time.Microsecond
}

func uuid(id store.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func uuids(ids []store.ID) []pgtype.UUID {
	all := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		all[i] = uuid(id)
	}
	return all
}

// times returns due and expires in microseconds from now; null means none.
func times(r *store.Record) (due, expires pgtype.Int8) {
	if r.State == store.Pending || r.State == store.InProgress {
		due = pgtype.Int8{Int64: r.Due.Microseconds(), Valid: true}
	}
	if r.Expire != 0 && !r.State.Unfinished() {
		expires = pgtype.Int8{Int64: r.Expire.Microseconds(), Valid: true}
	}
	return due, expires
}
