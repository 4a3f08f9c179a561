package task

import (
	"context"

	"github.com/semelgo/semel/admin"
)

// RunDue runs the tasks that are due now, and returns how many runs it started when all
// of them have ended. A task that becomes due meanwhile, because another task enqueued
// it or because it failed with a delay of zero, runs too. A task that failed with a
// longer delay does not: the next call runs it once it is due.
//
// Unless Options.NoSweeper is set, RunDue first makes one pass of [admin.Sweep], which
// makes the tasks of dead workers due. It is for programs that a scheduler starts, and
// for tests.
//
// The error is one of [Worker.Run], that of the store if it does not answer, or that
// of ctx if ctx ends before the last task was claimed. Claimed tasks have ended then.
func (w *Worker) RunDue(ctx context.Context) (runs int, err error) {
	err = w.run(ctx, func(ctx, runCtx context.Context) error {
		if !w.options.NoSweeper {
			if _, err := admin.Sweep(ctx, w.engine, max(w.options.Sweeper.Batch, fullBatch)); err != nil {
				return err
			}
		}
		for more := true; more; {
			started, err := w.claimDue(ctx, runCtx)
			if runs += started; err != nil {
				return err
			}
			more = started > 0 // these may have made others due
		}
		return nil
	})
	return runs, err
}

// claimDue claims the due tasks of each kind until none is left, and waits until they
// have ended.
func (w *Worker) claimDue(ctx, runCtx context.Context) (started int, err error) {
	w.expectMore()
	for {
		if err := ctx.Err(); err != nil {
			return started, err
		}
		if k, n := w.nextClaim(); n > 0 {
			claimed, err := w.claim(ctx, runCtx, k, n)
			if started += claimed; err != nil {
				return started, err
			}
			continue
		}
		if !w.busy() {
			return started, nil
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
		}
	}
}

// busy reports whether a task is running.
func (w *Worker) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.attempts) > 0
}
