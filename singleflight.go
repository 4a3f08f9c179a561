package semel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
)

// flights are the keys this process is asking for, so that five hundred callers
// of one key are one caller of the store.
type inflightCalls struct {
	shards  [inflightShards]inflightShard
	waiting atomic.Int64
}

// flightShards are as many as make it unlikely that two callers of different keys
// meet at one lock.
const inflightShards = 32

type inflightShard struct {
	mu      sync.Mutex
	running map[store.ID]*inflightCall
}

func (f *inflightCalls) shard(id store.ID) *inflightShard {
	return &f.shards[id[len(id)-1]%inflightShards]
}

// flight is one key's way through: undecided while its first caller asks the
// store, then either running, with that caller as the leader or waiting for one
// of another process, or landed. Most have no followers.
type inflightCall struct {
	call  *Call // of its first caller
	begun instant

	mu        sync.Mutex // guards what follows
	running   bool
	holds     bool // the one that runs has a claim or holds the record's lock
	phases    [phaseCount]bool
	followed  bool       // somebody waits for it; the shard's mu guards this one
	followers *followers // nil until somebody waits
}

// followers are what those need who wait for a flight.
type followers struct {
	phases  [phaseCount]chan struct{} // made when somebody waits there
	current *store.Record             // once done is open
	err     error
}

// gate is what may be waited for.
type phase uint8

const (
	phaseDecided  phase = iota // open once running is known
	phaseWaiting               // open once its first caller waits for somebody it cannot see
	phaseFinished              // open once landed
	phaseCount
)

// opens opens a gate, with mu locked.
func (f *inflightCall) mark(g phase) {
	if f.phases[g] {
		return
	}
	f.phases[g] = true
	if f.followers != nil && f.followers.phases[g] != nil {
		close(f.followers.phases[g])
	}
}

// passage returns what is closed once g is open. The flight's mu is not locked.
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

// runs tells, once that is decided, whether the operation is running for the flight's
// key, and whether the run speaks for the key: it has a claim or holds the record's lock.
// A batch and an optimistic transaction have neither until they commit, so another
// request may own the key's record.
func (f *inflightCall) isRunning() (running, holds bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.holds
}

// landed returns what came of the flight, once it is done.
func (f *inflightCall) result() (store.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.followers.current, f.followers.err
}

// join returns the flight of the ID of call, and whether the asker is its first caller.
// That one's is mine, which is then said to have begun at that time.
func (f *inflightCalls) acquire(call *Call, mine *inflightCall, begun instant) (*inflightCall, bool) {
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

// lead tells the followers that the operation is running: for the flight's first caller
// or in another process. Holds says that the run has a claim or holds the record's lock.
func (f *inflightCalls) markRunning(mine *inflightCall, holds bool) {
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.running, mine.holds = true, holds
	mine.mark(phaseDecided)
}

// wait tells the others that the flight's first caller waits, while stands is
// all that can be seen: they need a place to wait, as it does.
func (f *inflightCalls) wait(mine *inflightCall, current store.Record) {
	if current.State != store.Absent {
		f.markRunning(mine, true)
		return
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.mark(phaseWaiting)
}

// land ends the flight with what stands, or with why that is not known.
func (f *inflightCalls) finish(id store.ID, mine *inflightCall, current *store.Record, err error) {
	s := f.shard(id)
	s.mu.Lock()
	delete(s.running, id)
	followed := mine.followed
	s.mu.Unlock()
	if !followed {
		return // and nobody knows of it any more
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	if mine.followers == nil {
		mine.followers = new(followers)
	}
	mine.followers.current, mine.followers.err = new(*current), err
	mine.mark(phaseDecided)
	mine.mark(phaseFinished)
}

// seat takes a place among those who wait, if there is one.
func (f *inflightCalls) tryWait(limit int) bool {
	if f.waiting.Add(1) <= int64(limit) {
		return true
	}
	f.waiting.Add(-1)
	return false
}

func (f *inflightCalls) releaseWaiter() { f.waiting.Add(-1) }

// await waits for ch, at most for as long as is left.
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
