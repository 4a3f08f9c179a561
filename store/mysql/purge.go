package mysql

import (
	"context"

	"github.com/semelgo/semel/store"
)

// purgeBatch is the number of records that one transaction removes.
const purgeBatch = 500

// Purge removes the records that expired first. It works in transactions of 500
// records, and skips records that another open transaction holds. Records removed
// before an error are counted and stay removed.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	gone := 0
	for gone < limit {
		batch := min(limit-gone, purgeBatch)
		n := 0
		done, err := s.locked(ctx, []step{{text: sqlPurgeable, args: []any{batch}, wait: skips}}, func(db runner, ids []store.ID) error {
			result, err := db.ExecContext(ctx, sqlPurge+list(len(ids)), idArgs(ids)...)
			if err != nil {
				return err
			}
			removed, err := result.RowsAffected()
			n = int(removed)
			return err
		})
		if err != nil {
			return gone, fault("purge", err)
		}
		if !done {
			break
		}
		gone += n
		if n < batch {
			break
		}
	}
	return gone, nil
}
