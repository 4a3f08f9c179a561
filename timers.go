package semel

import (
	"sync"
	"time"
	"weak"
)

// timerQueue wakes the leaseRenewers of an engine at their times, with one timer
// for all of them. Most attempts end before their first renewal, and cost a place
// in a heap only. New times are nearly always the latest, so that the place is
// found at once.
type timerQueue struct {
	mu    sync.Mutex      // guards the fields below
	clock *clock          // of the engine
	queue []*leaseRenewer // a heap, the earliest on top
	timer *time.Timer
	fires instant // when the timer fires; zero: it is not set
}

// wake schedules h at a time, in place of its old time.
func (hs *timerQueue) wake(h *leaseRenewer, at instant) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.at = at
	if h.place == 0 {
		hs.queue = append(hs.queue, h)
		h.place = int32(len(hs.queue))
	}
	hs.sort(int(h.place) - 1)
	hs.set()
}

// forget removes h. The timer stays, because the next renewer needs it.
func (hs *timerQueue) forget(h *leaseRenewer) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.place != 0 {
		hs.remove(h)
	}
}

// set sets the timer if the earliest renewer is due before it fires.
func (hs *timerQueue) set() {
	if len(hs.queue) == 0 {
		return
	}
	first := hs.queue[0].at
	if hs.fires != 0 && first >= hs.fires {
		return
	}
	hs.fires = first
	if hs.timer == nil {
		// The timer must not keep an unused engine in memory.
		hs.timer = time.AfterFunc(hs.clock.until(first), weakly(weak.Make(hs), (*timerQueue).fire))
		return
	}
	hs.timer.Reset(hs.clock.until(first))
}

// fire wakes the renewers that are due, each in its own goroutine.
func (hs *timerQueue) fire() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for now := hs.clock.now(); len(hs.queue) > 0 && hs.queue[0].at <= now; {
		h := hs.queue[0]
		hs.remove(h)
		go h.wake()
	}
	hs.fires = 0
	hs.set()
}

func (hs *timerQueue) remove(h *leaseRenewer) {
	at, last := int(h.place)-1, len(hs.queue)-1
	hs.put(at, hs.queue[last])
	hs.queue[last] = nil
	hs.queue = hs.queue[:last]
	h.place = 0
	if at < last {
		hs.sort(at)
	}
}

func (hs *timerQueue) put(place int, h *leaseRenewer) {
	hs.queue[place], h.place = h, int32(place)+1
}

// sort moves the renewer at i, whose time has changed, to its place.
func (hs *timerQueue) sort(i int) {
	h := hs.queue[i]
	for up := (i - 1) / 2; i > 0 && h.at < hs.queue[up].at; up = (i - 1) / 2 {
		hs.put(i, hs.queue[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(hs.queue) && hs.queue[down+1].at < hs.queue[down].at {
			down++
		}
		if down >= len(hs.queue) || hs.queue[down].at >= h.at {
			break
		}
		hs.put(i, hs.queue[down])
		i = down
	}
	hs.put(i, h)
}

// weakly returns a function that calls do unless *of was collected.
func weakly[T any](of weak.Pointer[T], do func(*T)) func() {
	return func() {
		if v := of.Value(); v != nil {
			do(v)
		}
	}
}
