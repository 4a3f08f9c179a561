package postgres

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// readRecord reads the columns of a row, after those of before.
func readRecord(row scanner, before ...any) (*store.Record, error) {
	return newReader(before...).read(row)
}

// reader reads the rows of a result one by one.
type reader struct {
	into []any

	id                    pgtype.UUID
	token                 storedToken
	at                    instants
	operation, scope, key pgtype.DriverBytes // copied before the next row is read
	fingerprint           []byte
	priority              int16
	tainted               bool
	input, outcome        []byte
}

func newReader(before ...any) *reader {
	r := &reader{}
	r.into = append(slices.Clone(before),
		&r.id, &r.token.state, &r.token.attempt, &r.token.owner, &r.at.due, &r.at.expires, &r.at.created, &r.at.changed, &r.at.now,
		&r.operation, &r.scope, &r.key, &r.fingerprint, &r.priority, &r.tainted, &r.input, &r.outcome)
	return r
}

func (r *reader) read(row scanner) (*store.Record, error) {
	if err := row.Scan(r.into...); err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	record := &store.Record{
		ID: r.id.Bytes, Token: r.token.token(),
		Operation: string(r.operation), Scope: string(r.scope), Key: string(r.key),
		Fingerprint: r.fingerprint, Priority: int8(r.priority), Tainted: r.tainted, Input: r.input, Outcome: r.outcome,
	}
	r.at.tell(record)
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

// instants are the times of a row, and the time at which it was read.
type instants struct{ due, expires, created, changed, now instant }

// tell sets a record's remaining and elapsed times.
func (at *instants) tell(r *store.Record) {
	if at.due.there {
		r.Due = micros(at.due.micros - at.now.micros)
	}
	if at.expires.there {
		r.Expire = left(at.expires.micros - at.now.micros)
	}
	r.Age, r.Since = micros(at.now.micros-at.created.micros), micros(at.now.micros-at.changed.micros)
}

// instant is a time of the server. None is null.
type instant struct {
	micros int64
	there  bool
}

// ScanTimestamptz scans a timestamp of pgx.
func (i *instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	*i = instant{micros: v.Time.UnixMicro(), there: v.Valid}
	return nil
}

// ScanInt64 scans a time that was read as a number.
func (i *instant) ScanInt64(v pgtype.Int8) error {
	*i = instant{micros: v.Int64, there: v.Valid}
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
