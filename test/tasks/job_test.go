//go:build unix

package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel"
)

// lease is that of the tasks whose workers are killed and stopped.
const lease = 300 * time.Millisecond

var (
	// inTx has its effect in the record's own database.
	inTx = semel.Define("in_tx", semel.OperationOptions[job]{Policy: semel.Atomic(), Lease: lease, Retry: patient()})
	// outside has it elsewhere, once per attempt.
	outside = semel.Define("outside", semel.OperationOptions[job]{Policy: semel.AtLeastOnce(), Lease: lease, Retry: patient()})
	// hopeless never succeeds.
	hopeless = semel.Define("hopeless", semel.OperationOptions[job]{
		Policy: semel.Atomic(), Lease: lease,
		Retry: &semel.Retry{MaxErrors: 3, MaxCrashes: 10_000, Delay: patient().Delay},
	})
)

// job is what a task is to do.
type job struct {
	N     int
	Seed  uint64        // of the errors of its attempts
	Takes time.Duration // how long it is at it
	Late  bool          // it writes first and is long about it then, with its transaction open
	Deaf  bool          // it goes on when its context has ended
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

// fate is what becomes of one attempt.
type fate int

const (
	succeeds   fate = iota
	errsBefore      // it writes
	errsAfter       // it has written
)

// fate draws what becomes of the job's attempt: 5 in 100 end in an error.
func (j job) fate(attempt uint32) fate {
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

var errMeant = errors.New("meant to be")

// do has the job's effect by write, as its attempt is to.
func (j job) do(ctx context.Context, process string, write func(context.Context, effect) error) (string, error) {
	a, ok := semel.AttemptOf(ctx)
	if !ok {
		return "", errors.New("there is no attempt")
	}
	e := effect{key: a.Call().Key(), attempt: a.Number(), owner: a.Token().Owner, process: process}
	if j.Deaf {
		ctx = context.WithoutCancel(ctx)
	}
	fate := j.fate(e.attempt)
	if !j.Late {
		if err := j.take(ctx); err != nil {
			return "", err
		}
	}
	if fate == errsBefore {
		return "", errMeant
	}
	if err := write(ctx, e); err != nil {
		return "", err
	}
	if j.Late {
		if err := j.take(ctx); err != nil {
			return "", err
		}
	}
	if fate == errsAfter {
		return "", errMeant
	}
	return e.result(), nil
}

// take lets pass what the job takes.
func (j job) take(ctx context.Context) error {
	if j.Takes > 0 {
		after(ctx, j.Takes)
	}
	return context.Cause(ctx)
}

// result is what the attempt that had the effect returns.
func (e effect) result() string { return fmt.Sprintf("%s#%d", e.key, e.attempt) }
