package semel

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// flights are the keys this process is asking for, so that five hundred callers
// of one key are one caller of the store.
type flights struct {
	mu      sync.Mutex
	running map[store.ID]*flight
	waiting int
}

// flight is one key's way through: undecided while its first caller asks the
// store, then either running, with that caller as the leader or waiting for one
// of another process, or landed.
type flight struct {
	fingerprint []byte
	begun       time.Time
	decided     chan struct{} // closed once running is known
	unseen      chan struct{} // closed once its first caller waits for somebody it cannot see
	done        chan struct{} // closed once landed

	waits bool // unseen is closed; only its first caller looks

	// Written before decided is closed.
	running bool
	// Written before done is closed.
	stands store.Record
	err    error
}

// join returns the flight of id, and whether the asker is its first caller.
func (f *flights) join(id store.ID, fingerprint []byte) (*flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.running[id]; other != nil {
		return other, false
	}
	if f.running == nil {
		f.running = make(map[store.ID]*flight)
	}
	mine := &flight{
		fingerprint: fingerprint, begun: now(),
		decided: make(chan struct{}), unseen: make(chan struct{}), done: make(chan struct{}),
	}
	f.running[id] = mine
	return mine, true
}

// lead tells the others that somebody runs what the flight asks for: its first
// caller, or another process.
func (f *flights) lead(mine *flight) {
	if mine.running {
		return
	}
	mine.running = true
	close(mine.decided)
}

// wait tells the others that the flight's first caller waits, while stands is
// all that can be seen: they need a place to wait, as it does.
func (f *flights) wait(mine *flight, stands store.Record) {
	switch {
	case stands.State != store.Absent:
		f.lead(mine)
	case !mine.waits:
		mine.waits = true
		close(mine.unseen)
	}
}

// land ends the flight with what stands, or with why that is not known.
func (f *flights) land(id store.ID, mine *flight, stands store.Record, err error) {
	f.mu.Lock()
	delete(f.running, id)
	f.mu.Unlock()
	mine.stands, mine.err = stands, err
	if !mine.running {
		close(mine.decided)
	}
	close(mine.done)
}

// seat takes a place among those who wait, if there is one.
func (f *flights) seat(limit int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting >= limit {
		return false
	}
	f.waiting++
	return true
}

func (f *flights) rise() {
	f.mu.Lock()
	f.waiting--
	f.mu.Unlock()
}

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
