package engine

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/timers"
	"github.com/semelgo/semel/store"
)

// leaseRenewer renews the lease of one attempt. The timer queue wakes it, so a short
// attempt needs neither a timer nor a goroutine. The leases of a worker's attempts
// are renewed together by [RenewLeases]; their renewers are only woken when a
// lease expires.
type leaseRenewer struct {
	a *Attempt

	entry timers.Entry // in the engine's queue

	stopped bool // guarded by mu

	mu          sync.Mutex         // guards the fields below
	nextBeat    time.Time          // next renewal; zero: RenewLeases renews
	expiry      time.Time          // end of the last confirmed lease
	stopRenewal context.CancelFunc // ends the running renewal; nil: none
}

// start counts the lease from before the claim was sent, because the store cannot
// have counted it from earlier. No other goroutine uses the renewer before sleep.
func (h *leaseRenewer) start(sent time.Time, alone bool) {
	h.expiry = sent.Add(h.a.times.firstLease())
	if alone {
		h.nextBeat = sent.Add(h.a.times.Heartbeat)
	}
	h.sleep()
}

// sleep schedules the next Wake.
func (h *leaseRenewer) sleep() {
	at := h.expiry
	if !h.nextBeat.IsZero() && h.stopRenewal == nil && h.nextBeat.Before(at) {
		at = h.nextBeat
	}
	h.a.c.timers.WakeAt(&h.entry, h, at)
}

// Wake does what is due.
func (h *leaseRenewer) Wake() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	now := clock.Now()
	expired := !h.expiry.After(now)
	var ctx context.Context
	if beats := !h.nextBeat.IsZero() && h.stopRenewal == nil && !h.nextBeat.After(now); beats {
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

// renewAlone makes the renewer of a worker's attempt renew by itself, after the
// worker is done with the attempt.
func (h *leaseRenewer) renewAlone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped && h.nextBeat.IsZero() {
		h.nextBeat = clock.Now().Add(h.a.times.Heartbeat)
		h.sleep()
	}
}

// stop ends the renewals. A renewal that is already sent may still be applied. That
// does no harm, because it has the same token.
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
	h.a.c.timers.Forget(&h.entry)
	if h.stopRenewal != nil {
		h.stopRenewal()
	}
}

// lose cancels the leader's context once, because the lease may be lost.
func (h *leaseRenewer) lose(why string) {
	h.mu.Lock()
	lost := !h.stopped
	h.stopLocked()
	h.mu.Unlock()
	if !lost {
		return
	}
	h.a.emit(h.a.ctx, event.LeaseLost, h.a.Record(), nil)
	h.a.cancel(&callerr.LeaseLostError{Of: h.a, Why: why})
}

// expired is called when the last confirmed lease has expired.
func (h *leaseRenewer) expired() {
	if h.maxRunLeft() <= 0 {
		h.lose("max run is over")
		return
	}
	if h.a.excludesOthers() {
		h.confirm(clock.Now())
		return
	}
	h.lose("the lease expired without a confirmed heartbeat")
}

// maxRunLeft is the remaining time of max run.
func (h *leaseRenewer) maxRunLeft() time.Duration {
	if h.a.times.MaxRun == 0 {
		return h.a.times.Lease
	}
	return h.a.times.MaxRun - clock.Since(h.a.begun)
}

// confirm restarts the lease, from the time when the renewal was sent.
func (h *leaseRenewer) confirm(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.expiry = sent.Add(min(h.a.times.Lease, h.maxRunLeft()))
	h.sleep()
}

// schedule sets the next renewal.
func (h *leaseRenewer) schedule(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.nextBeat.IsZero() {
		return
	}
	if h.stopRenewal != nil {
		h.stopRenewal()
		h.stopRenewal = nil
	}
	h.nextBeat = clock.Now().Add(after)
	h.sleep()
}

// renew renews the lease and schedules the next renewal; sooner if the store did
// not answer.
func (h *leaseRenewer) renew(ctx context.Context) {
	times := h.a.times
	sent := clock.Now()
	change, ok := h.renewal(sent)
	if !ok {
		return
	}
	// A renewal without a reply must not delay the next one.
	ctx, cancel := context.WithTimeout(ctx, min(times.Heartbeat, h.a.c.options.RecordTimeout))
	defer cancel()
	answers, err := h.a.c.store.Swap(ctx, []store.Change{change})
	if err != nil {
		answers = []store.SwapResult{{Busy: true}}
	}
	h.settle(sent, change, answers[0])
}

// renewal returns the change that renews the lease, if one is due.
func (h *leaseRenewer) renewal(sent time.Time) (store.Change, bool) {
	left := h.maxRunLeft()
	if left <= 0 || h.isStopped() {
		return store.Change{}, false // the current lease ends with max run; expired then cancels the context
	}
	if h.a.excludesOthers() {
		// The attempt's own transaction holds the only write lock, so a renewal
		// would wait for it.
		h.confirm(sent)
		h.schedule(h.a.times.Heartbeat)
		return store.Change{}, false
	}
	beat := protocol.Event{Step: protocol.StepHeartbeat, Token: h.a.token, Lease: min(h.a.times.Lease, left)}
	return protocol.Next(h.a.Record(), beat).Change, true
}

// settle applies the store's answer to the lease.
func (h *leaseRenewer) settle(sent time.Time, change store.Change, answer store.SwapResult) {
	switch {
	case answer.Busy || answer.Err != nil:
		h.schedule(max(h.a.times.Heartbeat/4, time.Millisecond))
	case answer.Applied(change):
		h.confirm(sent)
		h.schedule(h.a.times.Heartbeat)
	case h.a.isOwnEnd(answer.Token):
		h.stop()
	default:
		h.lose("superseded: another attempt has changed the record")
	}
}

// isStopped reports whether the renewer was stopped.
func (h *leaseRenewer) isStopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped
}

// isOwnEnd reports whether token is the attempt's own outcome, whose reply has not
// arrived yet.
func (a *Attempt) isOwnEnd(token store.Token) bool {
	return token.Owner == a.token.Owner && token.Attempt == a.token.Attempt
}

// excludesOthers reports whether the attempt's open transaction excludes all other
// writers, so that no takeover is possible.
func (a *Attempt) excludesOthers() bool {
	return a.c.caps.Exclusion == store.ExcludesAll && a.tx.open.Load()
}
