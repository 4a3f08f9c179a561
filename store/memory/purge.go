package memory

import (
	"container/heap"
	"context"
	"fmt"
	"time"
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
	var kept []*row
	for gone < limit && len(s.expiring) > 0 && s.expiring[0].expire <= now {
		r := s.expiring[0]
		s.expiring.drop(r)
		if s.holding[r.id] != nil || s.writing[r.id] != nil {
			kept = append(kept, r)
			continue
		}
		delete(s.rows, r.id)
		gone++
	}
	for _, r := range kept {
		s.expiring.add(r)
	}
	return gone
}

// expiryQueue is a heap of the committed rows that expire, so that a full store
// finds room without looking at every record.
type expiryQueue []*row

func (q *expiryQueue) add(r *row) { heap.Push(q, r) }

// keep adds a row if it expires.
func (q *expiryQueue) keep(r *row) {
	if r.expire != never {
		q.add(r)
	}
}

// drop does nothing for a row that does not expire.
func (q *expiryQueue) drop(r *row) {
	if r.expire != never {
		heap.Remove(q, r.place)
	}
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].expire < q[j].expire }

func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *expiryQueue) Push(x any) {
	r := x.(*row)
	r.place = len(*q)
	*q = append(*q, r)
}

func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return r
}
