package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Dequeue reads every committed record, and claims as Swap would. It never waits,
// and skips records that an open transaction holds or has written.
func (s *Store) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	err := ctx.Err()
	if err == nil {
		err = d.Check(maxBatch)
	}
	if err != nil {
		return nil, fmt.Errorf("dequeue: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if earlier := s.claimed(d, now); d.Reread || len(earlier) > 0 {
		return earlier, nil
	}
	waiting := s.waiting(d, now)
	records := make([]store.Record, 0, len(waiting))
	for _, r := range waiting {
		claim := d.Claim(*r.record(now, bytes.Clone))
		if _, made := s.swap(nil, &claim, now); made {
			records = append(records, *s.rows.of(r.id).record(now, bytes.Clone))
		}
	}
	return records, nil
}

// waiting returns the rows to claim, in order.
func (s *Store) waiting(d store.Dequeue, now time.Duration) []*row {
	var found []*row
	q := store.Query{State: store.Pending, Operation: d.Operation, Due: true}
	for r := range s.rows.all() {
		if matches(r, q, now) && r.operation == d.Operation && s.holding[r.id] == nil && s.writing[r.id] == nil {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
	})
	return found[:min(d.Limit, len(found))]
}

// claimed returns the current records that calls with d's Owner have claimed. Their
// order by Due is no longer known.
func (s *Store) claimed(d store.Dequeue, now time.Duration) []store.Record {
	var records []store.Record
	for r := range s.rows.all() {
		if r.token.State == store.InProgress && r.token.Owner == d.Owner && r.operation == d.Operation {
			records = append(records, *r.record(now, bytes.Clone))
		}
	}
	slices.SortFunc(records, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return records
}
