package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

const (
	// freshFor is how long counts are shown before they are read again, and restFactor
	// how much longer than the reading itself that is at least: counting may read all
	// records, and takes at most a twentieth of a processor.
	freshFor   = 10 * time.Second
	restFactor = 20
	// countTimeout limits one reading.
	countTimeout = 2 * time.Minute
	// countWait is how long a page waits for counts that are being read.
	countWait = 150 * time.Millisecond
)

// countCache has the counts of an engine. Counting may take seconds, so pages show the last
// counts with their age, and one goroutine reads new ones.
type countCache struct {
	runner semel.Runner

	mu      sync.Mutex
	counts  []store.Count
	known   bool // counts were read
	bounded bool // the store does not count; these are at least as many
	failed  bool // the last reading failed
	at      time.Time
	took    time.Duration
	running chan struct{} // closed when the reading ends; nil: none
}

// countResult is a copy of the cached counts.
type countResult struct {
	Counts          []store.Count
	Known, Bounded  bool
	Failed, Reading bool
	Age             time.Duration
}

// get returns the counts. If these are old, it begins to read new ones and waits for them
// for a moment.
func (c *countCache) get(ctx context.Context, wait time.Duration) countResult {
	c.mu.Lock()
	now := clock.Now()
	if old := !c.known || clock.Since(c.at) > max(freshFor, restFactor*c.took); old && c.running == nil {
		c.running = make(chan struct{})
		go c.read(context.WithoutCancel(ctx), now, c.running)
	}
	running := c.running
	c.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return countResult{slices.Clone(c.counts), c.known, c.bounded, c.failed, c.running != nil, clock.Since(c.at)}
}

// expire makes the next page read the counts again.
func (c *countCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.took = clock.Now().Add(-freshFor), 0
}

// read reads the counts, and closes done.
func (c *countCache) read(ctx context.Context, begun time.Time, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	counts, err := admin.Counts(ctx, c.runner)
	bounded := errors.Is(err, errors.ErrUnsupported)
	if bounded {
		counts, err = countSome(ctx, c.runner)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed = err != nil; err == nil {
		c.counts, c.bounded, c.known = counts, bounded, true
	}
	c.took, c.at, c.running = clock.Since(begun), begun, nil
	close(done)
}

// countSome counts the records on the first page of each state, for a store that does not
// count.
func countSome(ctx context.Context, e semel.Runner) ([]store.Count, error) {
	type group struct {
		operation string
		state     store.State
	}
	var counts []store.Count
	at := make(map[group]int)
	for _, state := range store.States() {
		page, err := admin.List(ctx, e, store.Query{State: state, Limit: store.MaxLimit})
		if err != nil {
			return nil, err
		}
		for i := range page {
			r := &page[i]
			k := group{r.Operation, r.State}
			n, ok := at[k]
			if !ok {
				n = len(counts)
				at[k], counts = n, append(counts, store.Count{Operation: r.Operation, State: r.State})
			}
			counts[n].Records++
			counts[n].Oldest = max(counts[n].Oldest, r.Since)
			if isOverdue(r) {
				counts[n].Overdue++
			}
			if admin.IsDeadLetter(*r) {
				counts[n].DeadLetters++
			}
			if r.Expire < 0 {
				counts[n].Purgeable++
			}
		}
	}
	return counts, nil
}

// operations returns the names of the counted operations.
func (c *countResult) operations() (names []string) {
	for _, n := range c.Counts {
		names = append(names, n.Operation)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
