package engine

import (
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
