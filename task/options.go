package task

import (
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
)

// Options configure a [Worker]. The zero value is valid.
type Options struct {
	// Slots is the maximum number of functions that run at a time, over all
	// operations. Zero means 10.
	Slots int
	// Poll is the poll interval of a worker that found no task. It is jittered:
	// each wait is between half and one and a half of it. A worker that expects
	// more tasks does not wait. Zero means one second.
	Poll time.Duration
	// Drain is how long running functions may continue after the worker was
	// told to stop. Then their contexts end. Zero means 30 seconds; a negative
	// value means no time.
	Drain time.Duration
	// Sweeper configures how the worker requeues the tasks of dead workers and
	// purges records past their retention. If its Every is zero, it is a third
	// of the shortest lease of the worker's operations.
	Sweeper admin.SweeperOptions
	// NoSweeper switches the sweeper off. Correctness does not depend on the
	// sweeper, but the tasks of a dead worker wait until another process
	// sweeps.
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
