package contest

import (
	"context"
	"sync"
)

// Once calls a function once in each of n concurrent callers, and returns their
// results. It prepares measurements.
func Once[T any](ctx context.Context, n int, do func(context.Context, *Caller) (T, error)) ([]T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	said := make([]T, n)
	var running sync.WaitGroup
	for i, c := range newCallers(n) {
		running.Go(func() {
			var err error
			if said[i], err = do(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return said, context.Cause(ctx)
}
