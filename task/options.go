package task

import (
	"time"

	"github.com/semelgo/semel"
)

// Options say how a [Worker] works. The zero value is good.
type Options struct {
	// Slots is how many functions run at a time, of all kinds together. Zero: 10.
	Slots int
	// Poll is how long a worker rests that has found nothing, spread over half to
	// one and a half of it. While there is more to do it does not rest. Zero: a
	// second.
	Poll time.Duration
	// Drain is how long the functions that run may go on when the worker is to
	// stop, before their contexts end. Zero: 30 seconds. Less than zero: no time.
	Drain time.Duration
	// Sweeper says how the worker frees what dead workers left and purges what is
	// past its retention. Its Every is, when zero, a third of the shortest lease
	// that the worker's operations have.
	Sweeper semel.SweeperOptions
	// NoSweeper leaves that to somebody else. Nothing becomes wrong without it, but
	// what a dead worker ran waits.
	NoSweeper bool
}

func (o *Options) setDefaults() error {
	switch {
	case o.Slots < 0:
		return invalid("Slots", "is negative")
	case o.Poll < 0:
		return invalid("Poll", "is negative: "+o.Poll.String())
	}
	if o.Slots == 0 {
		o.Slots = 10
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	return nil
}

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }
