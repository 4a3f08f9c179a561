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

// Get reads committed records. An open transaction does not make a record Busy for
// Get.
func (s *Store) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	answers := make([]store.SwapResult, len(ids))
	for i, id := range ids {
		answers[i] = standing(s.rows.of(id), now, bytes.Clone)
	}
	return answers, nil
}

// GetOne is Get of one ID, without a copy of large bytes.
func (s *Store) GetOne(ctx context.Context, id store.ID) (store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, fmt.Errorf("get: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return standing(s.rows.of(id), s.now(), sameBytes), nil
}

// Scan reads committed records. It reads every record of the store.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	found := s.matching(q, now)
	slices.SortFunc(found, order(q))
	found = found[min(max(q.Skip, 0), len(found)):]
	if size := q.PageSize(); len(found) > size {
		found = found[:size]
	}
	records := make([]store.Record, len(found))
	for i, r := range found {
		records[i] = *r.record(now, bytes.Clone)
	}
	return records, nil
}

func (s *Store) matching(q store.Query, now time.Duration) []*row {
	var found []*row
	for r := range s.rows.all() {
		if matches(r, q, now) {
			found = append(found, r)
		}
	}
	return found
}

func matches(r *row, q store.Query, now time.Duration) bool {
	if q.State != store.Absent && q.State != r.token.State {
		return false
	}
	if q.Operation != "" && q.Operation != r.operation {
		return false
	}
	if q.Due {
		return hasDue(r.token.State) && r.due <= now
	}
	return bytes.Compare(r.id[:], q.After[:]) > 0 || q.After == store.ID{}
}

func order(q store.Query) func(a, b *row) int {
	byID := func(a, b *row) int { return bytes.Compare(a.id[:], b.id[:]) }
	if !q.Due {
		return byID
	}
	return func(a, b *row) int { return cmp.Or(cmp.Compare(a.due, b.due), byID(a, b)) }
}
