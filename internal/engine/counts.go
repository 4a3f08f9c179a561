package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

var errNoCounts = fmt.Errorf("semel: the store cannot count its records: %w", errors.ErrUnsupported)

// Counts counts the records by operation and state.
func Counts(ctx context.Context, c *Core) ([]store.Count, error) {
	counter, ok := c.store.(store.Counter)
	if !ok {
		return nil, errNoCounts
	}
	counts, err := counter.Counts(ctx)
	if err != nil {
		return nil, callerr.Seal(fmt.Errorf("%w: count records: %w", callerr.ErrUnavailable, err))
	}
	return counts, nil
}
