package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// sqlPurged lists the tables for Purge: of a partitioned table, the partitions that
// are never dropped.
const sqlPurged = `SELECT c.relname::text FROM pg_partition_tree($1::text::regclass) p JOIN pg_class c ON c.oid = p.relid
WHERE p.isleaf AND NOT ` + dropped

// purged returns the names of the tables for Purge, quoted for statements.
func (s *Store) purged(ctx context.Context, t *tables) ([]string, error) {
	names, err := query(ctx, s, pgx.RowTo[string], sqlPurged, t.in("semel_records"), t.timedPrefix())
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = t.beside(names[i])
	}
	if len(names) == 0 { // it is not partitioned
		names = []string{t.in("semel_records")}
	}
	return names, err
}
