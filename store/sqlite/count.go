package sqlite

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel/store"
)

// sqlCounts reads the whole table, and is rare, so it is not prepared for every
// store.
const sqlCounts = `SELECT operation, state, count(*),
coalesce(sum(state IN (1, 2) AND due <= ` + now + `), 0), coalesce(sum(` + purgeable + `), 0),
coalesce(sum(state IN (3, 5) AND substr(outcome, 1, 1) = x'64'), 0), ` + now + ` - min(changed)
FROM semel_records GROUP BY operation, state ORDER BY operation, state`

// Counts reads every record, from one snapshot. In journal mode WAL it blocks no
// writer.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	var counts []store.Count
	err := s.query(ctx, func(rows *sql.Rows) error {
		for rows.Next() {
			var c store.Count
			var state, oldest int64
			if err := rows.Scan(&c.Operation, &state, &c.Records, &c.Overdue, &c.Purgeable, &c.DeadLetters, &oldest); err != nil {
				return err
			}
			c.State, c.Oldest = store.State(state), micros(oldest)
			counts = append(counts, c)
		}
		return rows.Err()
	}, sqlCounts)
	if err != nil {
		return nil, s.fault(ctx, "count records", err)
	}
	return counts, nil
}
