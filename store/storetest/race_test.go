package storetest_test

import (
	"sync"

	"github.com/semelgo/semel/store"
)

// race lets a broken store wait for the other concurrent callers of a check.
type race struct {
	mu      sync.Mutex
	changed sync.Cond // on mu
	callers int       // running concurrently; guarded by mu
	waiting int       // of these; guarded by mu
}

func newRace() *race {
	c := new(race)
	c.changed.L = &c.mu
	return c
}

// add counts n more concurrent callers.
func (c *race) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers += n
	c.changed.Broadcast()
}

// has reports whether n callers are running concurrently.
func (c *race) has(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callers >= n
}

// notify lets waiting callers look again at what they wait for. It locks mu, so
// that none is between its look and its wait.
func (c *race) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// wait waits until come returns true, as long as n callers are running and one of
// them is not waiting.
func (c *race) wait(n int, come func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	defer func() { c.waiting-- }()
	for c.callers >= n && c.waiting < c.callers && !come() {
		c.changed.Wait()
	}
}

// await waits until come returns true.
func (c *race) await(come func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !come() {
		c.changed.Wait()
	}
}

// readCounts counts the callers that have read a record and found it claimable.
type readCounts struct {
	race  *race
	reads map[store.ID]int // guarded by race.mu
}

func (h *hooked) newReadCounts() *readCounts {
	return &readCounts{h.race, make(map[store.ID]int)}
}

func (l *readCounts) add(id store.ID) int {
	l.race.mu.Lock()
	defer l.race.mu.Unlock()
	l.reads[id]++
	l.race.changed.Broadcast()
	return l.reads[id]
}

// awaitSecond waits until two callers have read the record.
func (l *readCounts) awaitSecond(id store.ID) {
	l.race.wait(2, func() bool { return l.reads[id] > 1 })
}
