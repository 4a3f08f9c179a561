package memory_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// sequentialStore makes single changes and reads single IDs by the methods for one.
type sequentialStore struct{ *memory.Store }

func (s sequentialStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if len(changes) != 1 {
		return s.Store.Swap(ctx, changes)
	}
	change := changes[0]
	change.To.Outcome = bytes.Clone(change.To.Outcome) // which is the store's from then on
	answer, err := s.SwapOne(ctx, change)
	return []store.SwapResult{withOwner(answer)}, err
}

func (s sequentialStore) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if len(ids) != 1 {
		return s.Store.Get(ctx, ids)
	}
	answer, err := s.GetOne(ctx, ids[0])
	return []store.SwapResult{withOwner(answer)}, err
}

// withOwner returns an answer whose bytes belong to the caller.
func withOwner(s store.SwapResult) store.SwapResult {
	if s.Record != nil {
		r := *s.Record
		r.Fingerprint, r.Input, r.Outcome = bytes.Clone(r.Fingerprint), bytes.Clone(r.Input), bytes.Clone(r.Outcome)
		s.Record = &r
	}
	return s
}

// The contract holds for what is asked for by itself.
func TestContractOneByOne(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		now := newClock()
		of := subject(memory.New(memory.Options{Now: now.Now}), now.Advance)
		of.Store = sequentialStore{of.Store.(*memory.Store)}
		return of
	})
}

// A caller whose context has ended gets no answer, and nothing is written.
func TestSwapOneWithCanceledContext(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c := store.Change{To: store.Record{ID: store.ID{1}, Token: store.Token{State: store.Pending, Owner: 1}}}
	if _, err := s.SwapOne(gone, c); err == nil {
		t.Error("SwapOne runs with a canceled context")
	}
	if _, err := s.GetOne(gone, c.To.ID); err == nil {
		t.Error("GetOne runs with a canceled context")
	}
	if got, err := s.GetOne(t.Context(), c.To.ID); err != nil || got.Record != nil {
		t.Errorf("GetOne = %+v, %v; want nothing", got, err)
	}
}
