// Package timers wakes many objects at their times, with one timer.
package timers

import (
	"sync"
	"time"
	"weak"

	"github.com/semelgo/semel/internal/clock"
)

// Queue wakes sleepers at their times, with one timer for all of them. Most are
// removed before their time, and cost a place in a heap only. New times are nearly
// always the latest, so that the place is found at once.
type Queue struct {
	mu    sync.Mutex // guards the fields below
	queue []*Entry   // a heap, the earliest on top
	timer *time.Timer
	fires time.Time // when the timer fires; zero: it is not set
}

// Entry is the place of a sleeper in a queue. It is a part of the sleeper.
type Entry struct {
	sleeper Sleeper
	at      time.Time
	place   int32 // in the queue, from 1; zero: not in the queue
}

// Sleeper is woken by a Queue, in a goroutine of its own.
type Sleeper interface{ Wake() }

// WakeAt wakes s, whose entry is e, at a time, in place of its old time.
func (q *Queue) WakeAt(e *Entry, s Sleeper, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.sleeper, e.at = s, at
	if e.place == 0 {
		q.queue = append(q.queue, e)
		e.place = int32(len(q.queue))
	}
	q.sort(int(e.place) - 1)
	q.set()
}

// Forget removes e. The timer stays, because the next sleeper needs it.
func (q *Queue) Forget(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.place != 0 {
		q.remove(e)
	}
}

// set sets the timer if the earliest sleeper is due before it fires.
func (q *Queue) set() {
	if len(q.queue) == 0 {
		return
	}
	first := q.queue[0].at
	if !q.fires.IsZero() && !first.Before(q.fires) {
		return
	}
	q.fires = first
	if q.timer == nil {
		// The timer must not keep the owner of an unused queue in memory.
		q.timer = time.AfterFunc(clock.Until(first), weakly(weak.Make(q), (*Queue).fire))
		return
	}
	q.timer.Reset(clock.Until(first))
}

// fire wakes the sleepers that are due.
func (q *Queue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for now := clock.Now(); len(q.queue) > 0 && !q.queue[0].at.After(now); {
		e := q.queue[0]
		q.remove(e)
		go e.sleeper.Wake()
	}
	q.fires = time.Time{}
	q.set()
}

func (q *Queue) remove(e *Entry) {
	at, last := int(e.place)-1, len(q.queue)-1
	q.put(at, q.queue[last])
	q.queue[last] = nil
	q.queue = q.queue[:last]
	e.place = 0
	if at < last {
		q.sort(at)
	}
}

func (q *Queue) put(place int, e *Entry) {
	q.queue[place], e.place = e, int32(place)+1
}

// sort moves the entry at i, whose time has changed, to its place.
func (q *Queue) sort(i int) {
	e := q.queue[i]
	for up := (i - 1) / 2; i > 0 && e.at.Before(q.queue[up].at); up = (i - 1) / 2 {
		q.put(i, q.queue[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(q.queue) && q.queue[down+1].at.Before(q.queue[down].at) {
			down++
		}
		if down >= len(q.queue) || !q.queue[down].at.Before(e.at) {
			break
		}
		q.put(i, q.queue[down])
		i = down
	}
	q.put(i, e)
}

// weakly returns a function that calls do unless *of was collected.
func weakly[T any](of weak.Pointer[T], do func(*T)) func() {
	return func() {
		if v := of.Value(); v != nil {
			do(v)
		}
	}
}
