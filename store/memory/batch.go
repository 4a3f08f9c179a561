package memory

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Batch is a list of functions that AtomicBatch calls in order, after the change of
// the record.
type Batch []func(tx *Tx) error

// AtomicBatch never returns Unknown. It calls the functions of the batch only if
// the change can be applied. The first error rolls everything back, and so does a
// panic, which continues.
func (s *Store) AtomicBatch(ctx context.Context, change store.Change, hold bool, batch Batch) (store.SwapResult, store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	tx, current := s.begin(change.To.ID, hold)
	defer s.end(tx) // also when a function panics or ends its goroutine
	if current.Busy {
		return current, store.NotCommitted, nil
	}
	if answer, wrote := s.writeFirst(tx, &change); !wrote {
		return answer, store.NotCommitted, nil
	}
	for _, do := range batch {
		if err := do(tx); err != nil {
			s.close(tx)
			return store.SwapResult{}, store.NotCommitted, err
		}
	}
	s.close(tx)
	if err := s.commit(tx, nil); err != nil {
		return store.SwapResult{}, store.NotCommitted, err
	}
	return store.SwapResult{Token: change.To.Token}, store.Committed, nil
}

// writeFirst applies the change for tx, and reports whether this call applied it.
func (s *Store) writeFirst(tx *Tx, change *store.Change) (store.SwapResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swap(tx, change, s.now())
}
