package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
)

// fullBatch is the number of claimed tasks that suggests more are waiting. It
// applies however many tasks were requested, because a store may return fewer.
const fullBatch = 100

// claimLoop claims tasks while slots are free. It returns when ctx ends or the
// engine is closed.
func (p *untypedWorker) claimLoop(ctx, runCtx context.Context) error {
	p.expectMore()
	poll := time.NewTimer(p.pollDelay())
	defer poll.Stop()
	for ctx.Err() == nil {
		if k, n := p.nextClaim(); n > 0 {
			if err := p.claim(ctx, runCtx, k, n); errors.Is(err, semel.ErrClosed) {
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

// pollDelay returns the jittered delay before the next poll: between half and
// one and a half of the poll interval.
func (p *untypedWorker) pollDelay() time.Duration {
	return p.options.Poll/2 + rand.N(p.options.Poll+1)
}

// expectMore marks every kind as possibly having due tasks.
func (p *untypedWorker) expectMore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		k.mayHaveMore = true
	}
}

// nextClaim chooses the kind to claim next and the number of tasks to claim. It
// distributes the free slots over the kinds that may have more tasks, so that
// each kind runs about as many as the others. Kinds that compete for the last
// slot take turns. The result is (nil, 0) if no slot is free or no kind may
// have more.
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

// leastBusy returns the kind with the fewest running and planned tasks, among
// the kinds below their limit that may have more. It starts the search at
// nextKind, so that equal kinds take turns.
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

// claim claims up to n tasks of k and starts them. If ctx has ended by then,
// the tasks are released without a run.
func (p *untypedWorker) claim(ctx, runCtx context.Context, k *kind, n int) error {
	attemptsCtx, cancel := context.WithCancelCause(runCtx)
	attempts, err := adapter.Dequeue(attemptsCtx, p.core, k.op, n)
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
		r := &run{kind: k, batch: b, attempt: a} // a separate allocation, so that r is freed when its function has ended
		if stopped {
			p.goroutines.submit(func() { p.release(r) })
			continue
		}
		p.goroutines.submit(func() { p.runTask(r) }) //nolint:contextcheck // an attempt has its own context
	}
	return err
}

// release ends an attempt whose function did not run because the worker is
// stopping. It counts neither as an error nor as a crash.
func (p *untypedWorker) release(r *run) {
	defer p.freeSlots(r)
	_, _ = r.attempt.End(nil, semel.NotCommitted(ErrStopped)) // the engine reports the result to the Observer
}

// batch is the tasks of one claim. Their attempts share a context.
type batch struct {
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

// freeSlots frees the slots of attempts that have ended.
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
