//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
)

// directCaller calls enqueued jobs directly, beside the workers.
type directCaller struct {
	op       *semel.Operation[job]
	seed     uint64
	held     int          // the jobs below this number are held
	enqueued atomic.Int64 // the jobs below this number are enqueued

	do   func(ctx context.Context, c semel.Call, j job) (string, error)
	note func(ctx context.Context, statement string, args ...any) error
}

func (p *directCaller) call(n int) semel.Call {
	return p.op.Call(semel.Shared(), fmt.Sprintf("job-%d", n), p.job(n))
}

func (p *directCaller) job(n int) job {
	if n < p.held {
		return job{N: n, Seed: p.seed, Held: true}
	}
	return newJob(n, p.seed)
}

// callJobs calls enqueued jobs directly, one by one until each is done, and records
// the answers. Such calls also take over the jobs of dead workers.
func (p *directCaller) callJobs(ctx context.Context) error {
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
func (p *directCaller) callUntilDone(ctx context.Context, n int) error {
	call, j := p.call(n), p.job(n)
	var failure error
	_ = realtest.Retry(ctx, func() bool { // the end of ctx is no failure
		result, err := p.do(ctx, call, j)
		switch {
		case err == nil:
			failure = p.note(context.WithoutCancel(ctx), insertAnswer, call.Key(), result)
			return true
		case errors.Is(err, semel.ErrInvalid), errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrInDoubt):
			failure = fmt.Errorf("ask for job %d: %w", n, err)
			return true
		}
		return false
	})
	return failure
}
