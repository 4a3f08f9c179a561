package storetest_test

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// brokenOwnTx are broken in transactions that the program begins.
func brokenOwnTx() []brokenStore {
	return []brokenStore{
		{"a change that is applied by what its transaction read before", "OwnTx/CommittedMeanwhile", staleSnapshot},
	}
}

// beginMemory begins transactions of the memory store, which only Atomic can begin.
func beginMemory(s *memory.Store) map[string]storetest.BeginFunc[*memory.Tx] {
	errRolledBack := errors.New("rolled back")
	begin := func(ctx context.Context) (*memory.Tx, func() error, func() error, error) {
		begun, result, ended := make(chan *memory.Tx), make(chan error), make(chan error, 1)
		go func() {
			_, err := s.Atomic(ctx, store.ID{}, false, func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
				begun <- tx
				return nil, <-result
			})
			ended <- err
		}()
		commit := func() error { result <- nil; return <-ended }
		rollback := func() error {
			result <- errRolledBack
			if err := <-ended; !errors.Is(err, errRolledBack) {
				return err
			}
			return nil
		}
		select {
		case tx := <-begun:
			return tx, commit, rollback, nil
		case err := <-ended:
			return nil, nil, nil, err
		}
	}
	return map[string]storetest.BeginFunc[*memory.Tx]{"read committed": begin}
}

// staleSnapshot compares a change with the records of the time at which its transaction
// made its first one, and writes over later records.
func staleSnapshot(h *hooked) {
	h.begins = true
	snapshots := make(map[*memory.Tx]map[store.ID]store.Token)
	h.swapTx = func(tx *memory.Tx, cs []store.Change) []store.Change {
		h.mu.Lock()
		defer h.mu.Unlock()
		snapshot := snapshots[tx]
		if snapshot == nil {
			snapshots[tx] = h.tokens()
			return cs
		}
		for i, c := range cs {
			if snapshot[c.To.ID] == c.If {
				cs[i].If = h.now(c.To.ID).Token
			}
		}
		return cs
	}
}

// tokens returns the current token of each record.
func (h *hooked) tokens() map[store.ID]store.Token {
	records, err := h.Store.Scan(context.Background(), store.Query{})
	if err != nil {
		panic(err)
	}
	tokens := make(map[store.ID]store.Token)
	for _, r := range records {
		tokens[r.ID] = r.Token
	}
	return tokens
}
