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

// lease is that of tasks whose workers are killed and stopped.
const lease = 300 * time.Millisecond

var (
	// inTx has its effect in the record's own database.
	inTx = semel.Define("in_tx", semel.OperationOptions[job]{Policy: semel.Atomic(), Lease: lease, Retry: patient()})
	// outside has its effect elsewhere, once per attempt.
	outside = semel.Define("outside", semel.OperationOptions[job]{Policy: semel.AtLeastOnce(), Lease: lease, Retry: patient()})
	// alwaysFails never succeeds.
	alwaysFails = semel.Define("hopeless", semel.OperationOptions[job]{
		Policy: semel.Atomic(), Lease: lease,
		Retry: &semel.Retry{MaxErrors: 3, MaxCrashes: 10_000, Delay: patient().Delay},
	})
)

// job describes the work of a task.
type job struct {
	N     int
	Seed  uint64        // of its attempts' errors
	Takes time.Duration // how long it runs
	Late  bool          // writes first, and then keeps its transaction open
	Deaf  bool          // continues after its context has ended
	Held  bool          // a worker holds its first attempt until it is killed or another attempt is done
}

// newJob draws the n-th job: 1 in 20 takes up to two leases.
func newJob(n int, seed uint64) job {
	draw := rand.New(rand.NewPCG(seed, uint64(n)))
	j := job{N: n, Seed: seed}
	if draw.IntN(20) == 0 {
		j.Takes, j.Late, j.Deaf = time.Duration(draw.Int64N(int64(2*lease))), draw.IntN(2) == 0, draw.IntN(2) == 0
	}
	return j
}

// attemptEnd is how one attempt ends.
type attemptEnd int

const (
	succeeds   attemptEnd = iota
	errsBefore            // before the write
	errsAfter             // after the write
)

// attemptEnd draws the end of the job's attempt: 5 in 100 end in an error.
func (j job) attemptEnd(attempt uint32) attemptEnd {
	if j.Held {
		return succeeds
	}
	draw := rand.New(rand.NewPCG(j.Seed, uint64(j.N)<<16|uint64(attempt)))
	switch draw.IntN(40) {
	case 0:
		return errsBefore
	case 1:
		return errsAfter
	default:
		return succeeds
	}
}

// holds is what a worker reports that holds a job.
const holds = "holds"

var errIntended = errors.New("meant to be")

// do writes the job's effect, if its attempt succeeds or fails after the write.
func (j job) do(ctx context.Context, db tables, process string, write func(context.Context, effect) error) (string, error) {
	a, ok := semel.AttemptOf(ctx)
	if !ok {
		return "", errors.New("there is no attempt")
	}
	e := effect{key: a.Call().Key(), attempt: a.Number(), owner: a.Token().Owner, process: process}
	if j.Held && e.attempt == 1 && process != "caller" {
		report(holds, e.key)
		<-ctx.Done()
		if err := awaitOtherEffect(context.WithoutCancel(ctx), db, e.key); err != nil {
			return "", err
		}
	}
	if j.Deaf || j.Held {
		ctx = context.WithoutCancel(ctx)
	}
	attemptEnd := j.attemptEnd(e.attempt)
	if !j.Late {
		if err := j.simulateWork(ctx); err != nil {
			return "", err
		}
	}
	if attemptEnd == errsBefore {
		return "", errIntended
	}
	if err := write(ctx, e); err != nil {
		return "", err
	}
	if j.Late {
		if err := j.simulateWork(ctx); err != nil {
			return "", err
		}
	}
	if attemptEnd == errsAfter {
		return "", errIntended
	}
	return e.result(), nil
}

// awaitOtherEffect waits until another attempt of a task has had its effect. The lease of a slow
// worker may end before the test harms the worker, and until another attempt begins, this one
// could still succeed.
func awaitOtherEffect(ctx context.Context, db tables, task string) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	return realtest.Retry(ctx, func() bool {
		var n int
		err := db.QueryRowContext(ctx, `select count(*) from effects where task = $1`, task).Scan(&n)
		return err == nil && n > 0
	})
}

// simulateWork waits as long as the job takes.
func (j job) simulateWork(ctx context.Context) error {
	if j.Takes > 0 {
		after(ctx, j.Takes)
	}
	return context.Cause(ctx)
}

// result is the result of the attempt that had the effect.
func (e effect) result() string { return fmt.Sprintf("%s#%d", e.key, e.attempt) }
