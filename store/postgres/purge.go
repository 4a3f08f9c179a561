package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// purgeBatch is how many records one transaction removes.
const purgeBatch = 500

// Purge removes the records that expired first. It works in transactions of 500
// records, and skips records that another open transaction holds. Records removed
// before an error are counted and stay removed. Of a partitioned table it removes
// records of the first partition only: the other partitions are dropped.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return 0, s.fault("purge", err)
	}
	names, err := s.purged(ctx, t)
	if err != nil {
		return 0, s.fault("purge", err)
	}
	gone := 0
	for _, name := range names {
		n, err := s.purgeTable(ctx, strings.ReplaceAll(t.purge, t.in("semel_records"), name), limit-gone)
		if gone += n; err != nil {
			return gone, s.fault("purge", err)
		}
	}
	return gone, nil
}

// purgeTable purges one table.
func (s *Store) purgeTable(ctx context.Context, text string, limit int) (gone int, err error) {
	for gone < limit {
		batch := min(limit-gone, purgeBatch)
		n := 0
		err := trip(ctx, poolSender{s}, frame{before: []string{s.texts.inOrder}}, func(b *pgx.Batch) {
			b.Queue(text, int64(batch)).Exec(func(tag pgconn.CommandTag) error {
				n = int(tag.RowsAffected())
				return nil
			})
		})
		if err != nil {
			return gone, err
		}
		gone += n
		if n < batch {
			break
		}
	}
	return gone, nil
}
