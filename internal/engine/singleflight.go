package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// inflightCalls has the keys that this process is calling now. Concurrent callers
// of one key become one caller of the store.
type inflightCalls struct {
	shards  [inflightShards]inflightShard
	waiting atomic.Int64
}

// inflightShards is large enough that two callers of different keys rarely need the
// same lock.
const inflightShards = 32

type inflightShard struct {
	mu      sync.Mutex
	running map[store.ID]*inflightCall
}

func (f *inflightCalls) shard(id store.ID) *inflightShard {
	return &f.shards[id[len(id)-1]%inflightShards]
}

// inflightCall is one key in this process. At first its first caller uses the
// store, and it is undecided. Then the operation runs, here or in another process,
// or the call has finished. Most calls have no followers.
type inflightCall struct {
	call  *Call // of its first caller
	begun time.Time

	mu        sync.Mutex // guards the fields below
	running   bool
	holds     bool // the attempt has a claim or holds the record's lock
	phases    [phaseCount]bool
	followed  bool       // it has a follower; guarded by the shard's mu
	followers *followers // nil until the first follower waits
}

// followers holds the channels and the result for waiting callers.
type followers struct {
	phases  [phaseCount]chan struct{} // made when a follower waits for the phase
	current *store.Record             // valid in phaseFinished
	err     error
}

// phase is a point that followers can wait for.
type phase uint8

const (
	phaseDecided  phase = iota // it is known whether the operation runs
	phaseWaiting               // the first caller waits for an attempt that it cannot see
	phaseFinished              // the call has finished
	phaseCount
)

// mark marks a phase as reached. mu is locked.
func (f *inflightCall) mark(g phase) {
	if f.phases[g] {
		return
	}
	f.phases[g] = true
	if f.followers != nil && f.followers.phases[g] != nil {
		close(f.followers.phases[g])
	}
}

// reached returns a channel that is closed when the phase is reached. mu is not
// locked.
func (f *inflightCall) reached(g phase) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == nil {
		f.followers = new(followers)
	}
	ch := &f.followers.phases[g]
	if *ch == nil {
		*ch = make(chan struct{})
		if f.phases[g] {
			close(*ch)
		}
	}
	return *ch
}

// isRunning reports, after phaseDecided, whether the operation is running, and
// whether the attempt holds the key: it has a claim or holds the record's lock. A
// batch and an optimistic transaction hold nothing before they commit, so another
// request may own the key's record.
func (f *inflightCall) isRunning() (running, holds bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.holds
}

// result returns the result after phaseFinished.
func (f *inflightCall) result() (store.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.followers.current, f.followers.err
}

// acquire returns the in-flight call of the key, and whether the caller is its
// first one. The first caller's call is mine, with the given start.
func (f *inflightCalls) acquire(call *Call, mine *inflightCall, begun time.Time) (*inflightCall, bool) {
	id := call.id
	s := f.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.running[id]; other != nil {
		other.followed = true
		return other, false
	}
	if s.running == nil {
		s.running = make(map[store.ID]*inflightCall)
	}
	mine.call, mine.begun = call, begun
	s.running[id] = mine
	return mine, true
}

// markRunning tells the followers that the operation is running, here or in another
// process. holds means that the attempt has a claim or holds the record's lock.
func (f *inflightCalls) markRunning(mine *inflightCall, holds bool) {
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.running, mine.holds = true, holds
	mine.mark(phaseDecided)
}

// wait tells the followers that the first caller waits, with the record that it has
// read. They need a waiter's place, too.
func (f *inflightCalls) wait(mine *inflightCall, current store.Record) {
	if current.State != store.Absent {
		f.markRunning(mine, true)
		return
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.mark(phaseWaiting)
}

// finish ends the call with the current record, or with the error of reading it.
func (f *inflightCalls) finish(id store.ID, mine *inflightCall, current *store.Record, err error) {
	s := f.shard(id)
	s.mu.Lock()
	delete(s.running, id)
	followed := mine.followed
	s.mu.Unlock()
	if !followed {
		return // no other goroutine knows of it
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	if mine.followers == nil {
		mine.followers = new(followers)
	}
	decided := *current
	mine.followers.current, mine.followers.err = &decided, err
	mine.mark(phaseDecided)
	mine.mark(phaseFinished)
}

// await waits for ch, at most for the duration left.
func await(ctx context.Context, ch <-chan struct{}, left time.Duration) error {
	select {
	case <-ch:
		return nil
	default:
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-ch:
		return nil
	case <-t.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}
