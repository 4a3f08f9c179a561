// Package timers wakes many objects at their times, with one timer.
package timers

import (
	"container/heap"
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
	queue entries    // a heap, the earliest on top
	timer *time.Timer
	fires time.Time // when the timer fires; zero: it is not set
}

// Entry is the place of a sleeper in a queue. It is a part of the sleeper.
type Entry struct {
	sleeper Sleeper
	at      time.Time
	place   int // in the queue, from 1; zero: not in the queue
}

// Sleeper is woken by a Queue, in a goroutine of its own.
type Sleeper interface{ Wake() }

// WakeAt wakes s, whose entry is e, at a time, in place of its old time.
func (q *Queue) WakeAt(e *Entry, s Sleeper, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.sleeper, e.at = s, at
	if e.place == 0 {
		heap.Push(&q.queue, e)
	} else {
		heap.Fix(&q.queue, e.place-1)
	}
	q.set()
}

// Forget removes e. The timer stays, because the next sleeper needs it.
func (q *Queue) Forget(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.place != 0 {
		heap.Remove(&q.queue, e.place-1)
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
		unused := weak.Make(q) // the timer must not keep the owner of an unused queue in memory
		q.timer = time.AfterFunc(clock.Until(first), func() {
			if q := unused.Value(); q != nil {
				q.fire()
			}
		})
		return
	}
	q.timer.Reset(clock.Until(first))
}

// fire wakes the sleepers that are due.
func (q *Queue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for now := clock.Now(); len(q.queue) > 0 && !q.queue[0].at.After(now); {
		e := heap.Pop(&q.queue).(*Entry)
		go e.sleeper.Wake()
	}
	q.fires = time.Time{}
	q.set()
}

// entries implement [heap.Interface], and know their places.
type entries []*Entry

// Len returns the number of entries.
func (q entries) Len() int { return len(q) }

// Less compares times.
func (q entries) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

// Swap swaps two entries.
func (q entries) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push appends an entry.
func (q *entries) Push(e any) {
	*q = append(*q, e.(*Entry))
	e.(*Entry).place = len(*q)
}

// Pop removes the last entry.
func (q *entries) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.place = 0
	return e
}
