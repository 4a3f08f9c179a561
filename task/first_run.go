package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/clock"
)

// firstRunRetention keeps the record of a schedule's first run longer than the
// schedule exists. Without the record the schedule would count as new.
const firstRunRetention = 100 * 365 * 24 * time.Hour

// firstRun is the result stored in the record of a schedule's first run.
type firstRun struct {
	Operation string    `json:"operation"`
	Schedule  string    `json:"schedule"`
	At        time.Time `json:"at"`
}

// firstRunCall returns the call whose record stores when the schedule first
// ran.
func (p *Periodic[In]) firstRunCall() semel.Call {
	op := semel.Define("semel.periodic", semel.OperationOptions[struct{}]{Policy: semel.AtLeastOnce(), Retention: firstRunRetention})
	// The two names together may be longer than a key may be.
	sum := sha256.Sum256([]byte(p.options.Operation.Name() + "\x00" + p.options.Name))
	return op.Call(p.options.Scope, hex.EncodeToString(sum[:]), struct{}{})
}

// startTime returns the time after which ticks are enqueued: CatchUp ago, but
// not before the schedule's first run. Processes that start the schedule at the
// same time agree on its first run, because the operation runs once and every
// process receives its result.
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
		_ = clock.Sleep(ctx, wait/2+rand.N(wait+1)) // the loop ends with ctx
	}
	return time.Time{}, nil
}

// isFinal reports whether a retry would lead to the same error.
func isFinal(err error) bool { return errors.Is(err, semel.ErrClosed) || semel.RetryAfter(err) <= 0 }

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
