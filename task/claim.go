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
func (w *Worker) claimLoop(ctx, runCtx context.Context) error {
	w.expectMore()
	poll := time.NewTimer(w.pollDelay())
	defer poll.Stop()
	for ctx.Err() == nil {
		if k, n := w.nextClaim(); n > 0 {
			if _, err := w.claim(ctx, runCtx, k, n); errors.Is(err, semel.ErrClosed) {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.freed:
		case <-w.wakeups:
			w.expectMore()
		case <-poll.C:
			w.expectMore()
			poll.Reset(w.pollDelay())
		}
	}
	return nil
}

// pollDelay returns the jittered delay before the next poll: between half and
// one and a half of the poll interval.
func (w *Worker) pollDelay() time.Duration {
	return w.options.Poll/2 + rand.N(w.options.Poll+1)
}

// expectMore marks every kind as possibly having due tasks.
func (w *Worker) expectMore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		k.mayHaveMore = true
	}
}

// nextClaim chooses the kind to claim next and the number of tasks to claim. It
// distributes the free slots over the kinds that may have more tasks, so that
// each kind runs about as many as the others. Kinds that compete for the last
// slot take turns. The result is (nil, 0) if no slot is free or no kind may
// have more.
func (w *Worker) nextClaim() (*kind, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shares := make([]int, len(w.kinds))
	for range w.options.Slots - len(w.attempts) {
		i, ok := w.leastBusy(shares)
		if !ok {
			break
		}
		shares[i]++
	}
	for i := range w.kinds {
		at := (w.nextKind + i) % len(w.kinds)
		if shares[at] > 0 {
			w.nextKind = at + 1
			return w.kinds[at], shares[at]
		}
	}
	return nil, 0
}

// leastBusy returns the kind with the fewest running and planned tasks, among
// the kinds below their limit that may have more. It starts the search at
// nextKind, so that equal kinds take turns.
func (w *Worker) leastBusy(shares []int) (least int, found bool) {
	for i := range w.kinds {
		at := (w.nextKind + i) % len(w.kinds)
		k := w.kinds[at]
		has := k.busy + shares[at]
		if !k.mayHaveMore || has >= k.limit {
			continue
		}
		if !found || has < w.kinds[least].busy+shares[least] {
			least, found = at, true
		}
	}
	return least, found
}

// claim claims up to n tasks of k and starts them. It returns how many. If ctx has
// ended by then, the tasks are released without a run.
func (w *Worker) claim(ctx, runCtx context.Context, k *kind, n int) (claimed int, err error) {
	attemptsCtx, cancel := context.WithCancelCause(runCtx)
	attempts, err := adapter.Dequeue(attemptsCtx, w.engine, k.op, n)
	stopped := ctx.Err() != nil
	if stopped || len(attempts) == 0 {
		cancel(ErrStopped)
	}
	b := &batch{cancel: cancel}
	b.left.Store(int64(len(attempts)))
	w.mu.Lock()
	k.mayHaveMore = err == nil && len(attempts) >= min(n, fullBatch)
	k.busy += len(attempts)
	for _, a := range attempts {
		w.attempts[a] = struct{}{}
	}
	w.mu.Unlock()
	w.inflight.Add(len(attempts))
	for _, a := range attempts {
		r := &run{kind: k, batch: b, attempt: a} // a separate allocation, so that r is freed when its function has ended
		if stopped {
			w.goroutines.submit(func() { w.release(r) })
			continue
		}
		w.goroutines.submit(func() { w.runTask(r) }) //nolint:contextcheck // an attempt has its own context
	}
	return len(attempts), err
}

// release ends an attempt whose function did not run because the worker is
// stopping. It counts neither as an error nor as a crash.
func (w *Worker) release(r *run) {
	defer w.freeSlots(r)
	_, _ = r.attempt.End(nil, semel.NotCommitted(ErrStopped)) // the engine reports the result to the Observer
}

// batch is the tasks of one claim. Their attempts share a context.
type batch struct {
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

// freeSlots frees the slots of attempts that have ended.
func (w *Worker) freeSlots(ended ...*run) {
	w.mu.Lock()
	for _, r := range ended {
		delete(w.attempts, r.attempt)
		r.kind.busy--
	}
	w.mu.Unlock()
	signal(w.freed)
	for _, r := range ended {
		if r.batch.left.Add(-1) == 0 {
			r.batch.cancel(nil)
		}
	}
	w.inflight.Add(-len(ended))
}
