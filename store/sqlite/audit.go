package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// SwapNoted is Swap of one change. It takes the record, the tokens and the age of
// the note from the change. Notes are stored in the table semel_notes, and remain
// when their record is purged.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if err := check(&c); err != nil {
		return store.SwapResult{Err: err}, nil
	}
	w, err := s.begin(ctx, verbLock)
	switch {
	case errors.Is(err, ErrBusy):
		return store.SwapResult{Busy: true}, nil
	case err != nil:
		return store.SwapResult{}, s.fault(ctx, "swap with a note", err)
	}
	defer w.leave(ctx)
	answer, err := w.swap(ctx, &c)
	switch {
	case err != nil:
		return store.SwapResult{}, s.fault(ctx, "swap with a note", err)
	case !answer.Applied(c):
		return answer, nil
	}
	args := append(append([]any{c.To.ID[:]}, tokenArgs(c.If)...), tokenArgs(c.To.Token)...)
	if _, err := w.exec(ctx, verbNote, append(args, []byte(n.Actor), []byte(n.Reason))...); err != nil {
		return store.SwapResult{}, s.fault(ctx, "keep the note", err)
	}
	verdict, err := w.commit(ctx)
	switch {
	case err == nil:
		return answer, nil
	case verdict == store.NotCommitted && IsBusy(err):
		return store.SwapResult{Busy: true}, nil
	default:
		return store.SwapResult{}, fmt.Errorf("swap with a note: commit: %w", err)
	}
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	var notes []store.Note
	err := s.query(ctx, func(rows *sql.Rows) error {
		for rows.Next() {
			var from, to [3]int64
			var age int64
			n := store.Note{ID: id}
			if err := rows.Scan(&from[0], &from[1], &from[2], &to[0], &to[1], &to[2], &n.Actor, &n.Reason, &age); err != nil {
				return err
			}
			n.From, n.To = token(from[0], from[1], from[2]), token(to[0], to[1], to[2])
			n.Age = micros(age)
			notes = append(notes, n)
		}
		return rows.Err()
	}, sqlNotes, id[:])
	if err != nil {
		return nil, s.fault(ctx, "read notes", err)
	}
	return notes, nil
}
