package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// lane publishes the events of one lane, one after the other, in a goroutine.
type lane struct {
	relay     *Relay
	number    int
	wakeups   chan struct{} // holds a value when the lane may have work
	giveBack  func()        // ends the context of run; also called more than once
	redriving atomic.Bool   // an operator has redriven parked aggregates

	// The fields below belong to the goroutine.
	attempt  *adapter.Attempt
	failing  map[aggregate]*failure
	pending  changes // published, but not removed yet
	deferred int     // consecutive errors of the store
}

// aggregate is the unit of order.
type aggregate struct{ topic, name string }

// changes are to be made by the next transaction.
type changes struct {
	removed, aside []int64
	failures       map[int64]int // by position
	parked         []store.ParkedAggregate
}

func (c *changes) empty() bool { return len(c.removed)+len(c.aside)+len(c.failures)+len(c.parked) == 0 }

// count has the failures of an event stored.
func (c *changes) count(seq int64, failures int) {
	if c.failures == nil {
		c.failures = make(map[int64]int)
	}
	c.failures[seq] = failures
}

// run publishes until stop ends, or the lane is idle or lost. Stop ends when the relay ends or gives the lane back.
func (l *lane) run(stop context.Context) {
	for {
		held := l.hold(stop)
		if l.relay.forget(l, !held || stop.Err() != nil) {
			return
		}
	}
}

// hold claims the lane, publishes, and gives the lane back. It reports whether the lane
// could be claimed.
func (l *lane) hold(stop context.Context) bool {
	a, _, err := adapter.Begin(context.WithoutCancel(stop), l.relay.engine, l.relay.call(fmt.Sprintf("lane-%02d", l.number)))
	if err != nil || a == nil { // another relay still has it: the next poll tries again
		return false
	}
	l.attempt, l.pending, l.deferred = a, changes{}, 0
	clear(l.failing)
	defer func() { _, _ = a.End(nil, semel.Snooze(0)) }() // without it the lease expires
	for l.work(stop) && l.wait(stop) {
	}
	return true
}

// work publishes what can be published now. It returns false if the lane must be given
// up.
func (l *lane) work(stop context.Context) bool {
	for {
		if l.over(stop) {
			return false
		}
		more, err := l.pass(stop)
		switch {
		case l.over(stop):
			return false
		case err != nil:
			adapter.Report(stop, l.relay.engine, event.StoreError, l.attempt.Record(), err)
			l.deferred++
			if !l.pause(stop, delayAfter(l.deferred)) {
				return false
			}
			continue
		}
		if l.deferred = 0; !more {
			return true
		}
	}
}

// over reports whether the lane must be given up.
func (l *lane) over(stop context.Context) bool {
	return stop.Err() != nil || l.attempt.Context().Err() != nil
}

// pause waits, and reports whether the lane may go on.
func (l *lane) pause(stop context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop.Done():
	case <-l.attempt.Context().Done():
	}
	return false
}

// wait waits for work. It returns false if the lane must be given up.
func (l *lane) wait(stop context.Context) bool {
	wait, retries := idle, false
	for _, f := range l.failing {
		if left := time.Until(f.retry); !retries || left < wait { //nolint:forbidigo // of this process's own delays
			wait, retries = left, true
		}
	}
	// A retry that is due was behind the events that were read: there is nothing to do for it yet.
	timer := time.NewTimer(max(firstDelay, wait))
	defer timer.Stop()
	select {
	case <-l.wakeups:
		return true
	case <-timer.C:
		return retries
	case <-stop.Done():
	case <-l.attempt.Context().Done():
	}
	return false
}
