package semel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// heart renews the lease of one attempt. Nothing runs until the first interval
// is over, so a short attempt costs two timers and no goroutine.
type heart struct {
	a     *Attempt
	begun time.Time

	ctx    context.Context //nolint:containedctx // ends the beat under way when the attempt ends
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	beat    *time.Timer
	expiry  *time.Timer
	sent    time.Time // when the last confirmed renewal was sent
	stopped bool
}

// startHeart counts the lease from before the claim was sent: the store cannot
// have counted it from earlier.
func startHeart(a *Attempt, sent time.Time) *heart {
	h := &heart{a: a, begun: sent, sent: sent}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(a.ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = time.AfterFunc(a.times.beat, h.tick)
	h.expiry = time.AfterFunc(until(sent.Add(a.times.firstLease())), h.expired)
	return h
}

// stop ends the beating. A renewal under way may still arrive: it is a change
// of the same token, so it does no harm.
func (h *heart) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halt()
}

func (h *heart) halt() {
	h.stopped = true
	h.beat.Stop()
	h.expiry.Stop()
	h.cancel()
}

// lose tells the leader, once, that it may not count on its lease any more.
func (h *heart) lose(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.halt()
	h.a.see(h.ctx, EventLeaseLost, h.a.record, nil)
	h.a.cancel(fmt.Errorf("%w: %s", ErrLeaseLost, why))
}

func (h *heart) expired() {
	if h.maxRunLeft() <= 0 {
		h.lose("max run is over")
		return
	}
	if h.a.excludesOthers() {
		h.confirm(now())
		return
	}
	h.lose("no heartbeat was confirmed for the length of a lease")
}

// maxRunLeft is how long the attempt may still go on.
func (h *heart) maxRunLeft() time.Duration {
	if h.a.times.maxRun == 0 {
		return h.a.times.lease
	}
	return h.a.times.maxRun - since(h.begun)
}

// confirm counts the lease anew, from when the renewal was sent.
func (h *heart) confirm(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.sent = sent
	h.expiry.Reset(until(sent.Add(min(h.a.times.lease, h.maxRunLeft()))))
}

// again sets the next beat.
func (h *heart) again(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.beat.Reset(after)
	}
}

// tick renews the lease and sets the next beat; sooner when the store gave no
// answer.
func (h *heart) tick() {
	times := h.a.times
	left := h.maxRunLeft()
	if left <= 0 {
		return // the lease given last ends with max run; expired tells
	}
	sent := now()
	if h.a.excludesOthers() {
		// Our own transaction keeps every other writer out, this renewal too.
		h.confirm(sent)
		h.again(times.beat)
		return
	}
	d := next(h.a.record, event{step: stepHeartbeat, token: h.a.record.Token, lease: min(times.lease, left)})
	// One that gets no answer must not keep the next from being sent.
	ctx, cancel := context.WithTimeout(h.ctx, min(times.beat, h.a.c.options.RecordTimeout))
	defer cancel()
	answers, err := h.a.c.store.Swap(ctx, []store.Change{d.change})
	switch {
	case err != nil || answers[0].Busy || answers[0].Err != nil:
		h.again(max(times.beat/4, time.Millisecond))
	case answers[0].InForce(d.change):
		h.confirm(sent)
		h.again(times.beat)
	case h.a.ownEnd(answers[0].Token):
		h.stop()
	default:
		h.lose("somebody else stands on the record")
	}
}

// ownEnd reports whether token is the attempt's own outcome, whose answer is
// still on its way.
func (a *Attempt) ownEnd(token store.Token) bool {
	return token.Owner == a.record.Owner && token.Attempt == a.record.Attempt
}

// excludesOthers tells whether the attempt's own open transaction keeps every
// other writer out, so that nobody can take over while it lasts.
func (a *Attempt) excludesOthers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.txOpen && a.c.caps.Exclusive
}
