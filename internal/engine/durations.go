package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/semelgo/semel/internal/callerr"
)

type duration struct {
	field string
	value time.Duration
}

func notNegative(ds ...duration) error {
	for _, d := range ds {
		if d.value < 0 {
			return callerr.Invalid(d.field, "is negative: "+d.value.String())
		}
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// either is cmp.Or of two values, and faster.
func either(d, otherwise time.Duration) time.Duration {
	if d != 0 {
		return d
	}
	return otherwise
}

// pause waits d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jitter returns a random duration between half of d and one and a half of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)+1))
}
