package sqlite

import (
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// readRecord reads the columns of one row, and further columns into after.
func readRecord(row scanner, after ...any) (*store.Record, error) {
	var (
		r                            store.Record
		id                           []byte
		state, attempt, owner        int64
		due, expires, created, since sql.NullInt64
		tainted                      int64
	)
	err := row.Scan(append([]any{
		&id, &state, &attempt, &owner, &due, &expires, &created, &since,
		&r.Operation, &r.Scope, &r.Key, &r.Fingerprint, &r.Priority, &tainted, &r.Input, &r.Outcome,
	}, after...)...)
	if err != nil {
		return nil, err
	}
	if len(id) != len(r.ID) {
		return nil, fmt.Errorf("a record's id has %d bytes", len(id))
	}
	r.ID = store.ID(id)
	r.Token = token(state, attempt, owner)
	r.Due = micros(due.Int64)
	r.Age, r.Since = micros(created.Int64), micros(since.Int64)
	r.Tainted = tainted != 0
	if expires.Valid {
		r.Expire = left(expires.Int64)
	}
	return &r, nil
}

// token converts an owner back to an unsigned number.
func token(state, attempt, owner int64) store.Token {
	return store.Token{State: store.State(state), Attempt: uint32(attempt), Owner: uint64(owner)}
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

// tokenArgs returns a token's columns: state, attempt, owner.
func tokenArgs(t store.Token) []any {
	return []any{int64(t.State), int64(t.Attempt), int64(t.Owner)}
}
