package memory

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Batch is what AtomicBatch runs behind the change of the record, in its order.
type Batch []func(tx *Tx) error

// AtomicBatch never answers Unknown. The functions of the batch are called when
// nothing stands in the way of the change, and not otherwise; the first error of one
// rolls everything back, and so does a panic, which goes on.
func (s *Store) AtomicBatch(ctx context.Context, change store.Change, hold bool, batch Batch) (store.SwapResult, store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	tx, stands := s.begin(change.To.ID, hold)
	defer s.end(tx) // also when a function panics or ends its goroutine
	if stands.Busy {
		return stands, store.NotCommitted, nil
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

// writeFirst makes the change for tx, and reports whether this very call did.
func (s *Store) writeFirst(tx *Tx, change *store.Change) (store.SwapResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swap(tx, change, s.now())
}
