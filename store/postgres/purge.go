package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// purgeBatch is how many records one transaction removes.
const purgeBatch = 500

// sqlPurged lists the tables for Purge: of a partitioned table, the partitions that
// are never dropped.
const sqlPurged = `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND (c.oid = $1::text::regclass OR c.oid IN (SELECT relid FROM pg_partition_tree($1::text::regclass))) AND NOT ` + dropped

// Purge removes the records that expired first. It works in transactions of 500
// records, and skips records that another open transaction holds. Records removed
// before an error are counted and stay removed. Of a partitioned table it removes
// records of the first partition only: the other partitions are dropped.
func (s *Store) Purge(ctx context.Context, limit int) (gone int, err error) {
	var names []string
	err = s.trip(ctx, "purge", frame{}, func(b *pgx.Batch, t *tables) {
		b.Queue(sqlPurged, t.in("semel_records"), t.timedPrefix()).Query(collect(&names, pgx.RowTo[string]))
	})
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		text := strings.ReplaceAll(sqlPurge, "semel_records", name)
		for full := true; full && gone < limit; {
			batch, n := min(limit-gone, purgeBatch), 0
			err := s.trip(ctx, "purge", s.texts.keyed, func(b *pgx.Batch, _ *tables) {
				b.Queue(text, int64(batch)).Exec(func(tag pgconn.CommandTag) error {
					n = int(tag.RowsAffected())
					return nil
				})
			})
			if err != nil {
				return gone, err
			}
			gone, full = gone+n, n == batch
		}
	}
	return gone, nil
}
