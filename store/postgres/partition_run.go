package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/internal/clock"
)

// Run divides the table if necessary, and then maintains its partitions until ctx
// ends, whose error it returns: it makes missing partitions, and drops old ones.
// Any number of processes may run it; they take turns, and continue each other's
// interrupted work. While a drop has to wait, Run makes partitions in between,
// every half Width.
func (p *Partitions) Run(ctx context.Context) error {
	for {
		if err := p.once(ctx); err != nil {
			return err
		}
		if err := clock.Sleep(ctx, p.options.Every); err != nil {
			return err
		}
	}
}

// once does one turn, and returns the error that ends Run.
func (p *Partitions) once(ctx context.Context) error {
	err := p.Divide(ctx)
	if err == nil {
		err = p.dropFor(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case p.options.OnError != nil:
		p.options.OnError(err)
		return nil
	case errors.Is(err, errOnlyHeld), errors.Is(err, errWaiting):
		return nil
	}
	return err
}

// dropFor is Drop for a limited time, because it may have to wait for hours, and
// partitions must be made meanwhile. The next turn continues it.
func (p *Partitions) dropFor(ctx context.Context) error {
	bounded, cancel := context.WithTimeoutCause(ctx, p.turn, errWaiting)
	defer cancel()
	_, err := p.Drop(bounded)
	if err != nil && context.Cause(bounded) == errWaiting && ctx.Err() == nil { //nolint:errorlint // it is this very one
		return fmt.Errorf("%w: %w", errWaiting, err)
	}
	return err
}

// errWaiting means that a drop waits for transactions that use the table.
var errWaiting = errors.New("semel/postgres: a drop of partitions has to wait, and goes on later")
