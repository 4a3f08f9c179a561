package redis

import (
	"context"
	"fmt"
)

// purgePage is the number of records that one call of the server removes.
const purgePage = 250

// Purge removes the records of each shard that expired first.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	removed := 0
	for shard := 0; shard < s.options.Shards && removed < limit; {
		page := min(purgePage, limit-removed)
		c := &call{shard: shard, name: "purge", args: []any{page}}
		if err := s.run(ctx, true, c); err != nil {
			return removed, fmt.Errorf("purge: %w", err)
		}
		n, _ := c.out[0].(int64)
		seen, _ := c.out[1].(int64)
		removed += int(n)
		if int(seen) < page {
			shard++
		}
	}
	return removed, nil
}
