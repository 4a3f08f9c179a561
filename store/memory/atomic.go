package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/semelgo/semel/store"
)

// Atomic never returns Unknown, and its commit cannot be delayed. With hold, an ID
// that another transaction holds or has written is Busy. Holding excludes other
// holders, but not Swap: if a Swap changes the record meanwhile, the transaction
// fails with ErrSuperseded. A nil change without an error commits.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return store.NotCommitted, fmt.Errorf("begin: %w", err)
	}
	tx, current := s.begin(id, hold)
	defer s.end(tx) // also when run panics or ends its goroutine
	last, err := run(ctx, tx, current)
	s.close(tx)
	if err != nil && last == nil {
		return store.NotCommitted, err
	}
	if err != nil {
		s.undo(tx)
	}
	if err := s.commit(tx, last); err != nil {
		return store.NotCommitted, fmt.Errorf("commit: %w", err)
	}
	return store.Committed, nil
}

func (s *Store) begin(id store.ID, hold bool) (*Tx, store.SwapResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := &Tx{store: s, values: make(map[string][]byte), rows: make(map[store.ID]*row)}
	if hold {
		if s.holding[id] != nil || s.writing[id] != nil {
			return tx, store.SwapResult{Busy: true}
		}
		s.holding[id] = tx
		tx.held, tx.holds = id, true
	}
	return tx, standing(s.rows.of(id), s.now(), bytes.Clone)
}

// commit applies last, which this call must apply, together with all writes of tx.
func (s *Store) commit(tx *Tx, last *store.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last != nil {
		if err := s.applyLast(tx, last); err != nil {
			return err
		}
	}
	for _, r := range tx.rows {
		s.put(r)
	}
	maps.Copy(s.values, tx.values)
	s.forget(tx) // committed writes are no longer tx's
	return nil
}

func (s *Store) applyLast(tx *Tx, last *store.Change) error {
	answer, wrote := s.swap(tx, last, s.now())
	switch {
	case wrote:
		return nil
	case answer.Err != nil:
		return answer.Err
	case answer.Busy:
		return fmt.Errorf("an open transaction has written record %s", last.To.ID)
	default:
		// Also if the change was applied before: its own transaction committed
		// then, and the writes of this one would be a second effect.
		return fmt.Errorf("record %s: %w", last.To.ID, store.ErrSuperseded)
	}
}

// close refuses later writes of a goroutine that run has left behind: they must not
// be added to a stored failure.
func (s *Store) close(tx *Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.done = true
}

// undo drops the writes of tx and keeps its right to the record.
func (s *Store) undo(tx *Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(tx)
}

func (s *Store) forget(tx *Tx) {
	for id := range tx.rows {
		delete(s.writing, id)
	}
	s.creating -= tx.creates
	tx.creates = 0
	clear(tx.rows)
	clear(tx.values)
}

// end releases everything that tx holds. Uncommitted writes are lost.
func (s *Store) end(tx *Tx) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(tx)
	if tx.holds {
		delete(s.holding, tx.held)
	}
	tx.done = true
}
