package admin

import (
	"context"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// Swept counts the changes of one pass of Sweep.
type Swept struct {
	Requeued int // Pending again: the policy allows another attempt
	Doubted  int // InDoubt: a probe or an operator must resolve it
	Healed   int // Succeeded: the probe found evidence
}

// Sweep makes one pass over the records with expired leases, of the operations that
// the engine was given, at most limit of each, and settles them as their policy
// says. Correctness does not depend on it: a retry of the key does the same. Any
// number of processes may sweep at once. After an error it returns what it did
// before. A probe that fails leaves only its own record.
func Sweep(ctx context.Context, e semel.Runner, limit int) (Swept, error) {
	swept, err := engine.Sweep(ctx, engine.CoreOf(e), limit)
	return Swept(swept), err
}

// SweeperOptions set how often a [Sweeper] runs. The zero value has good defaults.
type SweeperOptions struct {
	// Every is the pause between two passes. Zero: a third of the engine's lease.
	// Under Hold and Heal, a sweep leaves a live leader in doubt if its lease has
	// expired, because it got no processor time for instance. With short leases,
	// shorter pauses do so more often.
	Every time.Duration
	// Batch is the largest number of records of each operation that one pass
	// settles, and that it purges at a time. Zero: 500.
	Batch int
}

// Sweeper settles the records of dead leaders and purges records past their
// retention, periodically: its method Run(ctx) does so until ctx ends. Any number of
// processes may run one. Correctness does not depend on it, but without one, the record
// of a crashed process that is in doubt raises no alarm until its caller retries.
type Sweeper = engine.Sweeper

// NewSweeper returns a sweeper for the operations in [semel.Options].Operations; it only
// purges if there are none. Wrong options are a *FieldError.
//
//	sweeper, err := admin.NewSweeper(engine, admin.SweeperOptions{})
//	...
//	go sweeper.Run(ctx)
func NewSweeper(e semel.Runner, o SweeperOptions) (*Sweeper, error) {
	return engine.NewSweeper(e, engine.SweeperOptions(o))
}
