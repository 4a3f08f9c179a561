package semel

import (
	"sync"
	"time"
	"weak"
)

// hearts wakes the hearts of an engine's attempts, each at its time, with one timer
// for all of them. Most attempts end before their first beat, and have then cost a
// place in a heap: times come nearly in order, so that it is found at once.
type timerQueue struct {
	mu    sync.Mutex      // guards what follows
	clock *clock          // the engine's
	queue []*leaseRenewer // a heap, the first to be woken on top
	timer *time.Timer
	fires instant // when the timer does; zero: it is not set
}

// wake has h woken at that time, and not at the one it was to be woken before.
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

// forget lets h not be woken. The timer stays as it is: who comes next needs it.
func (hs *timerQueue) forget(h *leaseRenewer) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.place != 0 {
		hs.remove(h)
	}
}

// set sets the timer when the first is to be woken before it fires.
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
		// An engine that nobody has any more is not kept by its timer.
		hs.timer = time.AfterFunc(hs.clock.until(first), weakly(weak.Make(hs), (*timerQueue).fire))
		return
	}
	hs.timer.Reset(hs.clock.until(first))
}

// fire wakes those whose time has come. None of them waits for another.
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

// sort moves the heart at i, whose time has changed, to where it belongs.
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

// weakly calls do on what is there still.
func weakly[T any](of weak.Pointer[T], do func(*T)) func() {
	return func() {
		if v := of.Value(); v != nil {
			do(v)
		}
	}
}
