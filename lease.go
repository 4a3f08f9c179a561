package semel

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// heart renews the lease of one attempt. It is woken when there is something to do,
// so a short attempt has neither a timer nor a goroutine. An attempt of a worker is
// renewed together with its others, by [Core.RenewLeases], and only woken when its lease is
// over.
type leaseRenewer struct {
	a *Attempt

	at    instant // when it is woken; this and place are guarded by hearts.mu
	place int32   // among those that are to be woken, from 1; zero: nowhere

	stopped bool // guarded by mu

	mu          sync.Mutex         // guards what follows
	nextBeat    instant            // when to beat next; zero: Beat is called instead
	expiry      instant            // when the lease that was confirmed last is over
	stopRenewal context.CancelFunc // ends the beat under way; nil: none is
}

// start counts the lease from before the claim was sent: the store cannot have
// counted it from earlier. Nobody else knows of the heart before it sleeps.
func (h *leaseRenewer) start(sent instant, alone bool) {
	h.expiry = sent.add(h.a.times.firstLease())
	if alone {
		h.nextBeat = sent.add(h.a.times.beat)
	}
	h.sleep()
}

// sleep has the heart woken when there is something to do.
func (h *leaseRenewer) sleep() {
	at := h.expiry
	if h.nextBeat != 0 && h.stopRenewal == nil && h.nextBeat < at {
		at = h.nextBeat
	}
	h.a.c.timers.wake(h, at)
}

// awake does what there is to do now.
func (h *leaseRenewer) wake() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	now := h.a.c.now()
	expired := h.expiry <= now
	var ctx context.Context
	if beats := h.nextBeat != 0 && h.stopRenewal == nil && h.nextBeat <= now; beats {
		ctx, h.stopRenewal = context.WithCancel(context.WithoutCancel(h.a.ctx))
	}
	if !expired {
		h.sleep()
	}
	h.mu.Unlock()
	if expired {
		h.expired()
	}
	if ctx != nil {
		h.renew(ctx)
	}
}

// alone lets the heart of a worker's attempt beat by itself: the worker has no more
// to do with it.
func (h *leaseRenewer) renewAlone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.nextBeat == 0 {
		h.nextBeat = h.a.c.now().add(h.a.times.beat)
		h.sleep()
	}
}

// stop ends the beating. A renewal under way may still arrive: it is a change
// of the same token, so it does no harm.
func (h *leaseRenewer) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopLocked()
}

func (h *leaseRenewer) stopLocked() {
	if h.stopped {
		return
	}
	h.stopped = true
	h.a.c.timers.forget(h)
	if h.stopRenewal != nil {
		h.stopRenewal()
	}
}

// lose tells the leader, once, that it may not count on its lease any more.
func (h *leaseRenewer) lose(why string) {
	h.mu.Lock()
	lost := !h.stopped
	h.stopLocked()
	h.mu.Unlock()
	if !lost {
		return
	}
	h.a.emit(h.a.ctx, EventLeaseLost, h.a.Record(), nil)
	h.a.cancel(&leaseLostError{of: h.a, why: why})
}

// expired is called when the lease that was confirmed last is over.
func (h *leaseRenewer) expired() {
	if h.maxRunLeft() <= 0 {
		h.lose("max run is over")
		return
	}
	if h.a.excludesOthers() {
		h.confirm(h.a.c.now())
		return
	}
	h.lose("no heartbeat was confirmed for the length of a lease")
}

// maxRunLeft is how long the attempt may still go on.
func (h *leaseRenewer) maxRunLeft() time.Duration {
	if h.a.times.maxRun == 0 {
		return h.a.times.lease
	}
	return h.a.times.maxRun - h.a.c.since(h.a.begun)
}

// confirm counts the lease anew, from when the renewal was sent.
func (h *leaseRenewer) confirm(sent instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.expiry = sent.add(min(h.a.times.lease, h.maxRunLeft()))
	h.sleep()
}

// again sets the next beat.
func (h *leaseRenewer) schedule(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.nextBeat == 0 {
		return
	}
	if h.stopRenewal != nil {
		h.stopRenewal()
		h.stopRenewal = nil
	}
	h.nextBeat = h.a.c.now().add(after)
	h.sleep()
}

// tick renews the lease and sets the next beat; sooner when the store gave no
// answer.
func (h *leaseRenewer) renew(ctx context.Context) {
	times := h.a.times
	sent := h.a.c.now()
	change, ok := h.renewal(sent)
	if !ok {
		return
	}
	// One that gets no answer must not keep the next from being sent.
	ctx, cancel := context.WithTimeout(ctx, min(times.beat, h.a.c.options.RecordTimeout))
	defer cancel()
	answers, err := h.a.c.store.Swap(ctx, []store.Change{change})
	if err != nil {
		answers = []store.SwapResult{{Busy: true}}
	}
	h.settle(sent, change, answers[0])
}

// renewal is the change that renews the lease, if there is any to be made now.
func (h *leaseRenewer) renewal(sent instant) (store.Change, bool) {
	left := h.maxRunLeft()
	if left <= 0 || h.isStopped() {
		return store.Change{}, false // the lease given last ends with max run; expired tells
	}
	if h.a.excludesOthers() {
		// Our own transaction keeps every other writer out, this renewal too.
		h.confirm(sent)
		h.schedule(h.a.times.beat)
		return store.Change{}, false
	}
	beat := event{step: stepHeartbeat, token: h.a.token, lease: min(h.a.times.lease, left)}
	return next(h.a.Record(), beat).change, true
}

// hear makes of the store's answer what it says about the lease.
func (h *leaseRenewer) settle(sent instant, change store.Change, answer store.SwapResult) {
	switch {
	case answer.Busy || answer.Err != nil:
		h.schedule(max(h.a.times.beat/4, time.Millisecond))
	case answer.Applied(change):
		h.confirm(sent)
		h.schedule(h.a.times.beat)
	case h.a.isOwnEnd(answer.Token):
		h.stop()
	default:
		h.lose("somebody else stands on the record")
	}
}

// still tells whether the heart beats no more.
func (h *leaseRenewer) isStopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped
}

// ownEnd reports whether token is the attempt's own outcome, whose answer is
// still on its way.
func (a *Attempt) isOwnEnd(token store.Token) bool {
	return token.Owner == a.token.Owner && token.Attempt == a.token.Attempt
}

// excludesOthers tells whether the attempt's own open transaction keeps every
// other writer out, so that nobody can take over while it lasts.
func (a *Attempt) excludesOthers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.txOpen && a.c.caps.Exclusive
}
