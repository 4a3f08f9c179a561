package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// dropped says of a partition, by its name, that it is dropped when it is old, so
// that its records are not removed one by one before.
const dropped = `LIKE 'semel\_records\_p%'`

// sqlPurged lists the tables that Purge is for: of a table that is divided, the
// partitions that are never dropped.
const sqlPurged = `SELECT format('%I', c.relname) FROM pg_partition_tree($1::text::regclass) p JOIN pg_class c ON c.oid = p.relid
WHERE p.isleaf AND c.relname NOT ` + dropped

// purged returns the tables that Purge is for, as statements name them.
func (s *Store) purged(ctx context.Context, t *tables) ([]string, error) {
	names, err := query(ctx, s, pgx.RowTo[string], sqlPurged, t.in("semel_records"))
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = strings.TrimSuffix(t.in("semel_records"), "semel_records") + names[i]
	}
	if len(names) == 0 { // it is not divided
		names = []string{t.in("semel_records")}
	}
	return names, err
}
