package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// note is a store.Note with an instant of the store's clock.
type note struct {
	store.Note

	at time.Duration
}

// SwapNoted is Swap of one change. It takes the record, the tokens and the age of
// the note from the change. Notes remain when their record is purged. Their number
// is not limited, because operators write them.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SwapResult{}, fmt.Errorf("swap with a note: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	answer, _ := s.swap(nil, &c, now)
	if answer.Applied(c) {
		n.ID, n.From, n.To = c.To.ID, c.If, c.To.Token
		s.keepNote(note{Note: n, at: now})
	}
	return answer, nil
}

// keepNote stores one note per write, also if the write is repeated.
func (s *Store) keepNote(n note) {
	of := s.notes[n.ID]
	if slices.ContainsFunc(of, func(o note) bool { return o.To == n.To }) {
		return
	}
	s.notes[n.ID] = append(of, n)
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	notes := make([]store.Note, 0, len(s.notes[id]))
	for _, n := range s.notes[id] {
		n.Age = now - n.at
		notes = append(notes, n.Note)
	}
	return notes, nil
}
