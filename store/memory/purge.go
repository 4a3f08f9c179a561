package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Purge removes the records that expired first. A record that an open transaction
// holds or has written stays.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.purge(limit, s.now()), nil
}

func (s *Store) purge(limit int, now time.Duration) int {
	var gone int
	var kept []expiry
	for gone < limit && s.expiring.len() > 0 && s.expiring.first().at <= now {
		first := s.expiring.pop()
		r := s.rows.at(first.place)
		switch {
		case r.token.State == store.Absent || r.expire != first.at: // the entry is out of date
		case s.holding[r.id] != nil || s.writing[r.id] != nil:
			kept = append(kept, first)
		default:
			s.rows.remove(r.id)
			gone++
		}
	}
	for _, e := range kept {
		s.expiring.add(e)
	}
	return gone
}

// expires adds the expiry of r, which is committed. Its earlier expiries are not
// removed: they are skipped when they become due, or removed here when there are
// too many.
func (s *Store) expires(r *row) {
	if r.expire == never {
		return
	}
	s.expiring.add(expiry{r.expire, r.place})
	if s.expiring.len() <= 2*s.rows.len()+minStale {
		return
	}
	s.expiring = expiries{others: s.expiring.others[:0]}
	for r := range s.rows.all() {
		if r.expire != never {
			s.expiring.add(expiry{r.expire, r.place})
		}
	}
}

// minStale is the number of stale entries that are always tolerated.
const minStale = 64
