package postgres

import (
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// readRecord reads the columns of one row, behind those that are wanted before.
func readRecord(row scanner, before ...any) (*store.Record, error) {
	var (
		r                     store.Record
		id                    pgtype.UUID
		t                     storedToken
		due, expires          pgtype.Int8
		created, since        int64
		operation, scope, key []byte
		priority              int16
	)
	err := row.Scan(append(before, &id, &t.state, &t.attempt, &t.owner, &due, &expires, &created, &since,
		&operation, &scope, &key, &r.Fingerprint, &priority, &r.Tainted, &r.Input, &r.Outcome)...)
	if err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	r.ID, r.Token = id.Bytes, t.token()
	r.Operation, r.Scope, r.Key = string(operation), string(scope), string(key)
	r.Due, r.Priority = micros(due.Int64), int8(priority)
	r.Age, r.Since = micros(created), micros(since)
	if expires.Valid {
		r.Expire = left(expires.Int64)
	}
	return &r, nil
}

// storedToken is a token as the columns have it, with signed numbers.
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

// left is never zero, because an Expire of zero reads as never.
func left(n int64) time.Duration {
	if n == 0 {
		return -1
	}
	return micros(n)
}

// micros returns n microseconds, the longest time there is if they are more.
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

// times are due and expires, in microseconds from now; null is none.
func times(r *store.Record) (due, expires pgtype.Int8) {
	if r.State == store.Pending || r.State == store.InProgress {
		due = pgtype.Int8{Int64: r.Due.Microseconds(), Valid: true}
	}
	if r.Expire != 0 && !r.State.Unfinished() {
		expires = pgtype.Int8{Int64: r.Expire.Microseconds(), Valid: true}
	}
	return due, expires
}
