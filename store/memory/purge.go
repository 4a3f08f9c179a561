package memory

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Purge removes the records that expired first. A record that an open transaction
// holds or has written stays. Purge reads every record, unless none can have expired.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.purge(limit, s.now()), nil
}

func (s *Store) purge(limit int, now time.Duration) int {
	if s.earliest > now {
		return 0
	}
	s.earliest = never // of the rows that stay
	expired := s.sorted(func(r *row) bool {
		if r.expire <= now && s.holding[r.ID] == nil && s.writing[r.ID] == nil {
			return true
		}
		s.earliest = min(s.earliest, r.expire)
		return false
	}, func(a, b *row) int { return cmp.Compare(a.expire, b.expire) })
	for i, r := range expired {
		if i >= limit {
			s.earliest = min(s.earliest, r.expire)
			return i
		}
		delete(s.rows, r.ID)
	}
	return len(expired)
}

// makeRoom makes room for one more record, by removing expired ones if necessary.
// Uncommitted creates count as records.
func (s *Store) makeRoom(now time.Duration) error {
	records := len(s.rows)
	for id := range s.writing {
		if s.rows[id] == nil {
			records++
		}
	}
	if records < s.options.MaxRecords || s.purge(records, now) > 0 {
		return nil
	}
	return fmt.Errorf("%w: %d records", ErrFull, s.options.MaxRecords)
}
