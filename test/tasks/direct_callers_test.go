//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
)

// callJobs calls enqueued jobs directly, one by one until each is done, and records
// the answers. Such calls also take over the jobs of dead workers.
func (p *producer[Tx]) callJobs(ctx context.Context) error {
	for ctx.Err() == nil {
		n := int(p.enqueued.Load())
		if n == 0 {
			after(ctx, lease)
			continue
		}
		after(ctx, 20*time.Millisecond)
		// A job that takes long and is probably running.
		n -= 1 + rand.IntN(min(n, 10*batch))
		for n > 0 && newJob(n, p.seed).Takes == 0 {
			n--
		}
		if err := p.callUntilDone(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// callUntilDone calls the n-th job until it is done.
func (p *producer[Tx]) callUntilDone(ctx context.Context, n int) error {
	call, j := p.call(n), newJob(n, p.seed)
	var failure error
	_ = realtest.Retry(ctx, func() bool { // the end of ctx is no failure
		result, _, err := semel.DoTx(ctx, p.engine, call, func(ctx context.Context, tx Tx) (string, error) {
			return j.do(ctx, "caller", func(ctx context.Context, e effect) error { return p.database.effect(ctx, tx, e) })
		})
		switch {
		case err == nil:
			failure = p.database.note(context.WithoutCancel(ctx), insertAnswer, call.Key(), result)
			return true
		case errors.Is(err, semel.ErrInvalid), errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrInDoubt):
			failure = fmt.Errorf("ask for job %d: %w", n, err)
			return true
		}
		return false
	})
	return failure
}
