package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Purge removes the records that expired first. A record that an open
// transaction holds or has written stays.
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
	for gone < limit && len(s.expiring) > 0 && s.expiring[0].at <= now {
		first := s.expiring.pop()
		r := s.rows.of(first.id)
		switch {
		case r == nil || r.expire != first.at: // that was long ago
		case s.holding[first.id] != nil || s.writing[first.id] != nil:
			kept = append(kept, first)
		default:
			s.rows.remove(first.id)
			gone++
		}
	}
	for _, e := range kept {
		s.expiring.add(e)
	}
	return gone
}

// expires notes when r, which is committed, expires, if it does. What was noted of it
// before is not looked for: it is passed over when it comes up, or here, when it has
// become too much.
func (s *Store) expires(r *row) {
	if r.expire == never {
		return
	}
	s.expiring.add(expiry{r.expire, r.id})
	if len(s.expiring) <= 2*s.rows.len()+minStale {
		return
	}
	s.expiring = s.expiring[:0]
	for r := range s.rows.all() {
		if r.expire != never {
			s.expiring.add(expiry{r.expire, r.id})
		}
	}
}

// minStale is how much of what expired otherwise is borne at least.
const minStale = 64

// expiry is when a row expires, if it has not changed since.
type expiry struct {
	at time.Duration
	id store.ID
}

// expiryQueue is a heap of them, the first on top, so that a full store finds room
// without looking at every record. There is no pointer in it: the collector need not
// look at it either.
type expiryQueue []expiry

func (q *expiryQueue) add(e expiry) {
	i := len(*q)
	if i == cap(*q) {
		*q = slices.Grow(*q, max(i, minStale)) // doubled: append would copy it more often
	}
	*q = append(*q, e)
	for h := *q; i > 0; {
		up := (i - 1) / 2
		if h[up].at <= e.at {
			break
		}
		h[i], h[up] = h[up], e
		i = up
	}
}

func (q *expiryQueue) pop() expiry {
	h := *q
	first, last := h[0], len(h)-1
	e := h[last]
	h = h[:last]
	*q = h
	for i := 0; last > 0; {
		down := 2*i + 1
		if down+1 < last && h[down+1].at < h[down].at {
			down++
		}
		if down >= last || e.at <= h[down].at {
			h[i] = e
			break
		}
		h[i] = h[down]
		i = down
	}
	return first
}
