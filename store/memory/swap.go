package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Swap applies all changes under one lock. It fails as a whole, and has then
// written nothing, if ctx has ended, if the batch is larger than MaxBatch, or if it
// has a duplicate ID.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swapAll(nil, changes), nil
}

// SwapOne is Swap of one change, without a copy of large bytes.
func (s *Store) SwapOne(ctx context.Context, c store.Change) (answer store.SwapResult, err error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, fmt.Errorf("swap: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swapInto(&answer, nil, &c, s.now(), sameBytes)
	return answer, nil
}

// checkBatch validates a batch as a whole.
func checkBatch(ctx context.Context, changes []store.Change) error {
	err := ctx.Err()
	if err == nil {
		err = store.CheckBatch(changes, maxBatch)
	}
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	return nil
}

// swapAll makes each change on its own, for tx or, if that is nil, committed.
func (s *Store) swapAll(tx *Tx, changes []store.Change) []store.SwapResult {
	now := s.now()
	answers := make([]store.SwapResult, len(changes))
	for i := range changes {
		answers[i], _ = s.swap(tx, &changes[i], now)
	}
	return answers
}

// sameBytes replaces bytes.Clone for bytes that are never changed.
func sameBytes(b []byte) []byte { return b }

// swap reports whether this call has written.
func (s *Store) swap(tx *Tx, c *store.Change, now time.Duration) (answer store.SwapResult, wrote bool) {
	wrote = s.swapInto(&answer, tx, c, now, bytes.Clone)
	return answer, wrote
}

// swapInto is swap with the function that copies an outcome if necessary.
func (s *Store) swapInto(answer *store.SwapResult, tx *Tx, c *store.Change, now time.Duration, own func([]byte) []byte) (wrote bool) {
	if answer.Err = s.checkChange(c); answer.Err != nil {
		return false
	}
	id := c.To.ID
	if writer := s.writing[id]; writer != nil && writer != tx {
		answer.Busy = true
		return false
	}
	current := s.current(tx, id)
	if !current.admits(c, now) {
		if tokenOf(current) == c.To.Token { // the change is repeated
			answer.Token = c.To.Token
			return false
		}
		*answer = standing(current, now, own)
		return false
	}
	switch {
	case current == nil:
		if answer.Err = s.room(now); answer.Err != nil {
			return false
		}
		s.create(tx, &c.To, now, own)
	case tx == nil:
		before := current.expire
		if current.change(c, now, own); current.expire != before {
			s.expires(current)
		}
	default:
		changed := *current
		changed.change(c, now, own)
		s.write(tx, &changed)
	}
	answer.Token = c.To.Token
	return true
}

func (s *Store) checkChange(c *store.Change) error {
	if err := c.Check(s.options.MaxOutcome); err != nil {
		return fmt.Errorf("swap %w", err)
	}
	return nil
}

// current returns the current row for tx, and nil if there is none.
func (s *Store) current(tx *Tx, id store.ID) *row {
	if tx != nil {
		if r, written := tx.rows[id]; written {
			return r
		}
	}
	return s.rows.of(id)
}

// create creates a row, for tx's commit or committed.
func (s *Store) create(tx *Tx, to *store.Record, now time.Duration, own func([]byte) []byte) {
	if tx != nil {
		r := new(row)
		r.set(to, now, own)
		s.write(tx, r)
		return
	}
	r := s.rows.add(to.ID)
	r.set(to, now, own)
	s.expires(r)
}

// write keeps r for tx's commit.
func (s *Store) write(tx *Tx, r *row) {
	if s.current(tx, r.id) == nil {
		s.creating++
		tx.creates++
	}
	tx.rows[r.id] = r
	s.writing[r.id] = tx
}

func standing(r *row, now time.Duration, own func([]byte) []byte) store.SwapResult {
	if r == nil {
		return store.SwapResult{}
	}
	return store.SwapResult{Token: r.token, Record: r.record(now, own)}
}
