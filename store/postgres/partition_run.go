package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run divides the table if that has not been done, and then looks after its
// partitions until ctx ends, whose error it returns: it makes those that are
// missing, and drops those that are old. It may run in any number of processes,
// which take turns; it goes on where another one was interrupted. Where a drop has
// to wait it makes partitions in between, each half of a Width.
func (p *Partitions) Run(ctx context.Context) error {
	for {
		if err := p.once(ctx); err != nil {
			return err
		}
		t := time.NewTimer(p.options.Every)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// once does what there is to do, and returns what ends Run.
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
	case onlyHeld(err), errors.Is(err, errWaiting):
		return nil
	}
	return err
}

// dropFor is Drop for no longer than until partitions are to be made again: what it
// waits for may last for hours. The next turn goes on with it.
func (p *Partitions) dropFor(ctx context.Context) error {
	bounded, cancel := context.WithTimeoutCause(ctx, p.turn, errWaiting)
	defer cancel()
	_, err := p.Drop(bounded)
	if err != nil && context.Cause(bounded) == errWaiting && ctx.Err() == nil { //nolint:errorlint // it is this very one
		return fmt.Errorf("%w: %w", errWaiting, err)
	}
	return err
}

// errWaiting says that a drop waits for those who have the table in use.
var errWaiting = errors.New("semel/postgres: a drop of partitions has to wait, and goes on later")

// onlyHeld tells whether nothing went wrong but that partitions hold records.
func onlyHeld(err error) bool {
	if _, held := err.(*HeldError); held { //nolint:errorlint // each of several errors is asked for
		return true
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !onlyHeld(e) {
				return false
			}
		}
		return true
	}
	inner := errors.Unwrap(err)
	return inner != nil && onlyHeld(inner)
}
