package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// group is the operation and state of a Count.
type group struct {
	operation string
	state     store.State
}

// Counts reads every committed record.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	of := make(map[group]store.Count)
	for r := range s.rows.all() {
		g := group{r.operation, r.token.State}
		of[g] = r.countedIn(of[g], now)
	}
	return slices.SortedFunc(maps.Values(of), func(a, b store.Count) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.State, b.State))
	}), nil
}

// countedIn returns c with r added.
func (r *row) countedIn(c store.Count, now time.Duration) store.Count {
	c.Operation, c.State = r.operation, r.token.State
	c.Records++
	if hasDue(c.State) && r.due <= now {
		c.Overdue++
	}
	if r.expire <= now {
		c.Purgeable++
	}
	if (c.State == store.InDoubt || c.State == store.Failed) && len(r.outcome) > 0 && r.outcome[0] == store.DeadLetterMark {
		c.DeadLetters++
	}
	c.Oldest = max(c.Oldest, now-r.changed)
	return c
}
