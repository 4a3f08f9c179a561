package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel"
)

// firstRunRetention keeps the record of a schedule's first run for longer than the
// schedule lives: without it the schedule would be a new one.
const firstRunRetention = 100 * 365 * 24 * time.Hour

// firstRun is the result of the record that remembers when a schedule was first run.
type firstRun struct {
	Operation string    `json:"operation"`
	Schedule  string    `json:"schedule"`
	At        time.Time `json:"at"`
}

// firstRunCall is the call whose record remembers when the schedule was first run.
func (p *Periodic[In]) firstRunCall() semel.Call {
	op := semel.Define("semel.periodic", semel.OperationOptions[struct{}]{Policy: semel.AtLeastOnce(), Retention: firstRunRetention})
	// Together the two names may be longer than a key.
	sum := sha256.Sum256([]byte(p.options.Operation.Name() + "\x00" + p.options.Name))
	return op.Call(p.options.Scope, hex.EncodeToString(sum[:]), struct{}{})
}

// startTime returns the time after which the ticks are enqueued: CatchUp ago, but not
// before the schedule was first run. Processes that start it at once agree on the time
// of the first run, because the operation runs once and each receives its result.
func (p *Periodic[In]) startTime(ctx context.Context) (time.Time, error) {
	started, call := now(), p.firstRunCall()
	for ctx.Err() == nil {
		first, _, err := semel.Do(ctx, p.runner, call, func(context.Context) (firstRun, error) {
			return firstRun{Operation: p.options.Operation.Name(), Schedule: p.options.Name, At: started.UTC()}, nil
		})
		if err == nil {
			return later(first.At, started.Add(-p.options.CatchUp)), nil
		}
		if isFinal(err) && ctx.Err() == nil {
			return time.Time{}, err
		}
		wait := semel.RetryAfter(err)
		sleep(ctx, wait/2+rand.N(wait+1))
	}
	return time.Time{}, nil
}

// isFinal reports whether asking the store again leads to the same error.
func isFinal(err error) bool { return errors.Is(err, semel.ErrClosed) || semel.RetryAfter(err) <= 0 }

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
