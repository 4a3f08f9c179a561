package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Scan reads committed records. It reads every record of the store.
func (s *Store) Scan(ctx context.Context, q store.Query) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	found := s.sorted(func(r *row) bool { return r.matches(q, now) }, func(a, b *row) int {
		if !q.Due {
			return 0
		}
		return cmp.Compare(a.due, b.due)
	})
	found = found[min(max(q.Skip, 0), len(found)):]
	return records(found[:min(q.PageSize(), len(found))], now), nil
}

func (r *row) matches(q store.Query, now time.Duration) bool {
	if q.State != store.Absent && q.State != r.State {
		return false
	}
	if q.Operation != "" && q.Operation != r.Operation {
		return false
	}
	if q.Due {
		return hasDue(r.State) && r.due <= now
	}
	return bytes.Compare(r.ID[:], q.After[:]) > 0 || q.After == store.ID{}
}

// sorted returns the rows that match, in an order, and by ID where that is equal.
func (s *Store) sorted(match func(*row) bool, order func(a, b *row) int) []*row {
	var found []*row
	for _, r := range s.rows {
		if match(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *row) int { return cmp.Or(order(a, b), bytes.Compare(a.ID[:], b.ID[:])) })
	return found
}

// records returns copies of the rows for the caller.
func records(rows []*row, now time.Duration) []store.Record {
	records := make([]store.Record, len(rows))
	for i, r := range rows {
		records[i] = *cloneBytes(r.record(now))
	}
	return records
}

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
	byPriority := func(a, b *row) int { return cmp.Compare(b.Priority, a.Priority) }
	// What an earlier call with d's Owner has claimed. Its order by Due is no longer known.
	earlier := s.sorted(func(r *row) bool {
		return r.State == store.InProgress && r.Owner == d.Owner && r.Operation == d.Operation
	}, byPriority)
	if d.Reread || len(earlier) > 0 {
		return records(earlier, now), nil
	}
	waiting := s.sorted(func(r *row) bool {
		return r.State == store.Pending && r.Operation == d.Operation && r.due <= now && s.holding[r.ID] == nil && s.writing[r.ID] == nil
	}, func(a, b *row) int { return cmp.Or(byPriority(a, b), cmp.Compare(a.due, b.due)) })
	var claimed []*row
	for _, r := range waiting[:min(d.Limit, len(waiting))] {
		claim := d.Claim(*cloneBytes(r.record(now)))
		if _, made := s.swap(nil, &claim, now); made {
			claimed = append(claimed, r)
		}
	}
	return records(claimed, now), nil
}

// Counts reads every committed record.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	type group struct {
		operation string
		state     store.State
	}
	of := make(map[group]store.Count)
	for _, r := range s.rows {
		g := group{r.Operation, r.State}
		of[g] = r.countedIn(of[g], now)
	}
	return slices.SortedFunc(maps.Values(of), func(a, b store.Count) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.State, b.State))
	}), nil
}

// countedIn returns c with r added.
func (r *row) countedIn(c store.Count, now time.Duration) store.Count {
	c.Operation, c.State = r.Operation, r.State
	c.Records++
	if hasDue(c.State) && r.due <= now {
		c.Overdue++
	}
	if r.expire <= now {
		c.Purgeable++
	}
	if (c.State == store.InDoubt || c.State == store.Failed) && len(r.Outcome) > 0 && r.Outcome[0] == store.DeadLetterMark {
		c.DeadLetters++
	}
	c.Oldest = max(c.Oldest, now-r.changed)
	return c
}
