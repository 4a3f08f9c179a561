package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// orphanedClaims has the owners of Dequeue calls without a reply. The claims that
// such a call may have made were not run. They are released when they are found,
// before their leases expire.
type orphanedClaims struct {
	mu    sync.Mutex
	items []orphanedClaim
}

type orphanedClaim struct {
	operation string
	owner     uint64
	until     time.Time // after the last moment at which the call can be applied
	// run has the attempts of the owner whose reply arrived after all.
	run map[store.ID]uint32

	next  time.Time // when to search for claims again
	pause time.Duration
}

// maxOrphanedClaims limits the list. Claims beyond it wait for the end of their
// leases.
const maxOrphanedClaims = 100

func (l *orphanedClaims) add(item orphanedClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) < maxOrphanedClaims {
		l.items = append(l.items, item)
	}
}

// due returns an operation's owners to search for now, and removes those that have
// expired.
func (l *orphanedClaims) due(operation string) []orphanedClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = slices.DeleteFunc(l.items, func(i orphanedClaim) bool { return clock.Until(i.until) < 0 })
	var due []orphanedClaim
	for _, i := range l.items {
		if i.operation == operation && clock.Until(i.next) <= 0 {
			due = append(due, i)
		}
	}
	return due
}

// backOff delays the next search for an owner's claims, each time for longer, so
// that the searches do not load a store that has just recovered.
func (l *orphanedClaims) backOff(owner uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.items {
		if i := &l.items[n]; i.owner == owner {
			i.next, i.pause = clock.Now().Add(i.pause), 2*i.pause
		}
	}
}
