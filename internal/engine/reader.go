package engine

import (
	"context"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/lazyctx"
	"github.com/semelgo/semel/store"
)

// reader reads current records, in batches with other callers.
type reader struct {
	store     store.Store
	inProcess store.InProcess // the store, if it implements InProcess
	batching  *batching
	timeout   time.Duration
}

// get reads the current record. It reads in a batch first, and alone after an
// error, with as many tries as swap.
func (r *reader) get(ctx context.Context, id store.ID) (store.Record, error) {
	if r.inProcess != nil {
		if answer, err := r.inProcess.GetOne(ctx, id); err == nil || ctx.Err() != nil {
			return recordOf(answer), err
		}
	}
	begun := clock.Now()
	if r.batching.gets != nil {
		answer, err := r.batching.gets.Do(ctx, id, false)
		if err == nil || isNotSent(err) || ctx.Err() != nil {
			return recordOf(answer), err
		}
	}
	ctx, span := lazyctx.WithDeadline(ctx, begun.Add(r.timeout))
	defer span.End()
	var last error
	for range swapTries {
		answers, err := r.store.Get(ctx, []store.ID{id})
		if err == nil {
			return recordOf(answers[0]), nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return store.Record{}, last
}

// getAll reads several records, with as many tries as get.
func (r *reader) getAll(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var last error
	for range swapTries {
		answers, err := r.store.Get(ctx, ids)
		if err == nil {
			records := make([]store.Record, len(answers))
			for i := range answers {
				records[i] = recordOf(answers[i])
			}
			return records, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	return nil, last
}
