package postgres

import (
	"context"
	"errors"
	"time"
)

// Run divides the table if that has not been done, and then looks after its
// partitions until ctx ends, whose error it returns: it makes those that are
// missing, and drops those that are old. It may run in any number of processes,
// which take turns; it goes on where another one was interrupted.
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
		_, err = p.Drop(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case p.options.OnError != nil:
		p.options.OnError(err)
		return nil
	case onlyHeld(err):
		return nil
	}
	return err
}

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
