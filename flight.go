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
	fingerprint []byte
	begun       time.Time

	mu      sync.Mutex // guards what follows
	decided gate       // open once running is known
	unseen  gate       // open once its first caller waits for somebody it cannot see
	done    gate       // open once landed

	running  bool
	followed bool          // somebody waits for it; the shard's mu guards this one
	stands   *store.Record // once done is open, for followers: nil if there are none
	err      error
}

// gate is what may be waited for.
type gate struct {
	isOpen bool
	ch     chan struct{} // made when somebody waits
}

func (g *gate) open() {
	if g.isOpen {
		return
	}
	g.isOpen = true
	if g.ch != nil {
		close(g.ch)
	}
}

// passage returns what is closed once g is open. The flight's mu is not locked.
func (f *flight) passage(g *gate) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
		if g.isOpen {
			close(g.ch)
		}
	}
	return g.ch
}

// runs tells whether somebody runs what the flight asks for, once that is decided.
func (f *flight) runs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

// landed returns what came of the flight, once it is done.
func (f *flight) landed() (store.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.stands, f.err
}

// join returns the flight of id, and whether the asker is its first caller.
// That one's is mine, which is then said to have begun at that time.
func (f *flights) join(id store.ID, fingerprint []byte, mine *flight, begun time.Time) (*flight, bool) {
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
	mine.fingerprint, mine.begun = fingerprint, begun
	s.running[id] = mine
	return mine, true
}

// lead tells the others that somebody runs what the flight asks for: its first
// caller, or another process.
func (f *flights) lead(mine *flight) {
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.running = true
	mine.decided.open()
}

// wait tells the others that the flight's first caller waits, while stands is
// all that can be seen: they need a place to wait, as it does.
func (f *flights) wait(mine *flight, stands store.Record) {
	if stands.State != store.Absent {
		f.lead(mine)
		return
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	mine.unseen.open()
}

// land ends the flight with what stands, or with why that is not known.
func (f *flights) land(id store.ID, mine *flight, stands store.Record, err error) {
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
	mine.stands, mine.err = new(stands), err
	mine.decided.open()
	mine.done.open()
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

// await waits for ch, at most until the deadline.
func await(ctx context.Context, ch <-chan struct{}, deadline time.Time) error {
	select {
	case <-ch:
		return nil
	default:
	}
	t := time.NewTimer(until(deadline))
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
