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
type flights struct {
	shards  [flightShards]flightShard
	waiting atomic.Int64
}

// flightShards are as many as make it unlikely that two callers of different keys
// meet at one lock.
const flightShards = 32

type flightShard struct {
	mu      sync.Mutex
	running map[store.ID]*flight
}

func (f *flights) shard(id store.ID) *flightShard { return &f.shards[id[len(id)-1]%flightShards] }

// flight is one key's way through: undecided while its first caller asks the
// store, then either running, with that caller as the leader or waiting for one
// of another process, or landed. Most have no followers.
type flight struct {
	call  *Call // of its first caller
	begun instant

	mu       sync.Mutex // guards what follows
	running  bool
	holds    bool // the one that runs has a claim or holds the record's lock
	open     [gates]bool
	followed bool       // somebody waits for it; the shard's mu guards this one
	crowd    *followers // nil until somebody waits
}

// followers are what those need who wait for a flight.
type followers struct {
	gates  [gates]chan struct{} // made when somebody waits there
	stands *store.Record        // once done is open
	err    error
}

// gate is what may be waited for.
type gate uint8

const (
	decided gate = iota // open once running is known
	unseen              // open once its first caller waits for somebody it cannot see
	done                // open once landed
	gates
)

// opens opens a gate, with mu locked.
func (f *flight) opens(g gate) {
	if f.open[g] {
		return
	}
	f.open[g] = true
	if f.crowd != nil && f.crowd.gates[g] != nil {
		close(f.crowd.gates[g])
	}
}

// passage returns what is closed once g is open. The flight's mu is not locked.
func (f *flight) passage(g gate) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crowd == nil {
		f.crowd = new(followers)
	}
	ch := &f.crowd.gates[g]
	if *ch == nil {
		*ch = make(chan struct{})
		if f.open[g] {
			close(*ch)
		}
	}
	return *ch
}

// runs tells, once that is decided, whether the operation is running for the flight's
// key, and whether the run speaks for the key: it has a claim or holds the record's lock.
// A batch and an optimistic transaction have neither until they commit, so another
// request may own the key's record.
func (f *flight) runs() (running, holds bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.holds
}

// landed returns what came of the flight, once it is done.
func (f *flight) landed() (store.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.crowd.stands, f.crowd.err
}

// join returns the flight of the ID of call, and whether the asker is its first caller.
// That one's is mine, which is then said to have begun at that time.
func (f *flights) join(call *Call, mine *flight, begun instant) (*flight, bool) {
	id := call.id
	s := f.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.running[id]; other != nil {
		other.followed = true
		return other, false
	}
	if s.running == nil {
		s.running = make(map[store.ID]*flight)
	}
	mine.call, mine.begun = call, begun
	s.running[id] = mine
	return mine, true
}

// lead tells the followers that the operation is running: for the flight's first caller
// or in another process. Holds says that the run has a claim or holds the record's lock.
func (f *flights) lead(mine *flight, holds bool) {
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.running, mine.holds = true, holds
	mine.opens(decided)
}

// wait tells the others that the flight's first caller waits, while stands is
// all that can be seen: they need a place to wait, as it does.
func (f *flights) wait(mine *flight, stands store.Record) {
	if stands.State != store.Absent {
		f.lead(mine, true)
		return
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.opens(unseen)
}

// land ends the flight with what stands, or with why that is not known.
func (f *flights) land(id store.ID, mine *flight, stands *store.Record, err error) {
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
	if mine.crowd == nil {
		mine.crowd = new(followers)
	}
	mine.crowd.stands, mine.crowd.err = new(*stands), err
	mine.opens(decided)
	mine.opens(done)
}

// seat takes a place among those who wait, if there is one.
func (f *flights) seat(limit int) bool {
	if f.waiting.Add(1) <= int64(limit) {
		return true
	}
	f.waiting.Add(-1)
	return false
}

func (f *flights) rise() { f.waiting.Add(-1) }

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
