package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
)

// fullBatch is how many in one answer mean that there may be more, whatever was asked
// for: a store may give fewer than that.
const fullBatch = 100

// claimLoop asks for tasks while there are slots for them, until ctx ends or the
// engine is closed.
func (p *untypedWorker) claimLoop(ctx, alive context.Context) error {
	p.expectMore()
	poll := time.NewTimer(p.pollDelay())
	defer poll.Stop()
	for ctx.Err() == nil {
		if k, n := p.nextClaim(); n > 0 {
			if err := p.claim(ctx, alive, k, n); errors.Is(err, semel.ErrClosed) {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.freed:
		case <-p.wakeups:
			p.expectMore()
		case <-poll.C:
			p.expectMore()
			poll.Reset(p.pollDelay())
		}
	}
	return nil
}

// pollDelay is how long to wait for the next look.
func (p *untypedWorker) pollDelay() time.Duration {
	return p.options.Poll/2 + rand.N(p.options.Poll+1)
}

// expectMore supposes that there may be tasks of every kind.
func (p *untypedWorker) expectMore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		k.mayHaveMore = true
	}
}

// nextClaim chooses which kind to ask for next, and how many of it: free slots go to the
// kinds of which there may be more, so that they come to run equally many, and
// those that share the last one take turns. None: there is no slot, or nothing to
// ask for.
func (p *untypedWorker) nextClaim() (*kind, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shares := make([]int, len(p.kinds))
	for range p.options.Slots - len(p.attempts) {
		i, ok := p.leastBusy(shares)
		if !ok {
			break
		}
		shares[i]++
	}
	for i := range p.kinds {
		at := (p.nextKind + i) % len(p.kinds)
		if shares[at] > 0 {
			p.nextKind = at + 1
			return p.kinds[at], shares[at]
		}
	}
	return nil, 0
}

// leastBusy finds, from the one whose turn it is, the kind that runs leastBusy, with what
// it is to get, of those that may get more.
func (p *untypedWorker) leastBusy(shares []int) (least int, found bool) {
	for i := range p.kinds {
		at := (p.nextKind + i) % len(p.kinds)
		k := p.kinds[at]
		has := k.busy + shares[at]
		if !k.mayHaveMore || has >= k.limit {
			continue
		}
		if !found || has < p.kinds[least].busy+shares[least] {
			least, found = at, true
		}
	}
	return least, found
}

// claim asks for n tasks of k and starts them. Those that come when ctx has ended
// are given back.
func (p *untypedWorker) claim(ctx, alive context.Context, k *kind, n int) error {
	theirs, cancel := context.WithCancelCause(alive)
	attempts, err := p.core.Dequeue(theirs, k.op, n)
	stopped := ctx.Err() != nil
	if stopped || len(attempts) == 0 {
		cancel(ErrStopped)
	}
	b := &batch{cancel: cancel}
	b.left.Store(int64(len(attempts)))
	p.mu.Lock()
	k.mayHaveMore = err == nil && len(attempts) >= min(n, fullBatch)
	k.busy += len(attempts)
	for _, a := range attempts {
		p.attempts[a] = struct{}{}
	}
	p.mu.Unlock()
	p.inflight.Add(len(attempts))
	for _, a := range attempts {
		r := &run{kind: k, batch: b, attempt: a} // kept no longer than its own function runs
		if stopped {
			p.goroutines.submit(func() { p.release(r) }) //nolint:contextcheck // an attempt has a context of its own
			continue
		}
		p.goroutines.submit(func() { p.runTask(r) }) //nolint:contextcheck // likewise
	}
	return err
}

// release ends an attempt whose function was not run, because its context has
// ended: that does not count.
func (p *untypedWorker) release(r *run) {
	defer p.freeSlots(r)
	_, _ = r.attempt.End(nil, semel.NotCommitted(ErrStopped)) // what stands then is told to the Observer
}

// batch is what one asking has claimed. Its attempts share a context.
type batch struct {
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

// freeSlots gives back the slots of attempts that have ended.
func (p *untypedWorker) freeSlots(ended ...*run) {
	p.mu.Lock()
	for _, r := range ended {
		delete(p.attempts, r.attempt)
		r.kind.busy--
	}
	p.mu.Unlock()
	signal(p.freed)
	for _, r := range ended {
		if r.batch.left.Add(-1) == 0 {
			r.batch.cancel(nil)
		}
	}
	p.inflight.Add(-len(ended))
}
