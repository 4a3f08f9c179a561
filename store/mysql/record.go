package mysql

import (
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/semelgo/semel/store"
)

// readRecord reads the columns of one row, and further columns into after.
func readRecord(rows *sql.Rows, after ...any) (*store.Record, error) {
	var (
		r            store.Record
		id           []byte
		due, expires sql.NullInt64
		age, since   int64
	)
	err := rows.Scan(append([]any{
		&id, &r.State, &r.Attempt, &r.Owner, &due, &expires, &age, &since,
		&r.Operation, &r.Scope, &r.Key, &r.Fingerprint, &r.Priority, &r.Tainted, &r.Input, &r.Outcome,
	}, after...)...)
	if err != nil {
		return nil, err
	}
	if len(id) != len(r.ID) {
		return nil, fmt.Errorf("a record's id has %d bytes", len(id))
	}
	r.ID = store.ID(id)
	r.Due, r.Age, r.Since = micros(due.Int64), micros(age), micros(since)
	if expires.Valid {
		r.Expire = micros(expires.Int64)
		if r.Expire == 0 { // an Expire of zero means never
			r.Expire = -1
		}
	}
	return &r, nil
}

// readRecords reads all rows, and closes them.
func readRecords(rows *sql.Rows, after ...any) ([]store.Record, error) {
	defer rows.Close()
	var records []store.Record
	for rows.Next() {
		r, err := readRecord(rows, after...)
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, rows.Err()
}

// micros returns n microseconds, at most the longest duration.
func micros(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(max(-most, min(n, most))) * time.Microsecond
}

// statement returns the statement of a change. Its create fails, or changes no row
// with orNothing, if the record exists.
func statement(c *store.Change) (text string, args []any) {
	to := &c.To
	switch c.If {
	case store.Token{}:
		return into + row, createArgs(to)
	case to.Token:
		return sqlBeat, append([]any{due(to), expires(to)}, currentArgs(c)...)
	default:
		return sqlMove, append([]any{
			uint64(to.State), to.Attempt, to.Owner, due(to), expires(to), to.Tainted, orNull(to.Input), orNull(to.Outcome),
		}, currentArgs(c)...)
	}
}

func createArgs(to *store.Record) []any {
	return []any{
		to.ID[:], uint64(to.State), to.Attempt, to.Owner, due(to), expires(to), to.Tainted,
		[]byte(to.Operation), []byte(to.Scope), []byte(to.Key), orNull(to.Fingerprint), to.Priority, orNull(to.Input), orNull(to.Outcome),
	}
}

func currentArgs(c *store.Change) []any {
	return []any{c.To.ID[:], uint64(c.If.State), c.If.Attempt, c.If.Owner, c.IfDue}
}

// due is in microseconds from now, nil for states without Due.
func due(r *store.Record) any {
	if r.State == store.Pending || r.State == store.InProgress {
		return r.Due.Microseconds()
	}
	return nil
}

// expires is in microseconds from now, nil for never.
func expires(r *store.Record) any {
	if r.Expire != 0 && !r.State.Unfinished() {
		return r.Expire.Microseconds()
	}
	return nil
}

// orNull keeps nil apart from empty bytes.
func orNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
