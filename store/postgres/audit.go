package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// SwapNoted is Swap of one change. It takes the record, the tokens and the age of
// the note from the change. Notes are stored in the table semel_notes, and remain
// when their record is purged.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	answers, err := s.swap(ctx, "swap with a note", []store.Change{c}, &n)
	if err != nil {
		return store.SwapResult{}, err
	}
	return answers[0], nil
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) (notes []store.Note, err error) {
	err = s.trip(ctx, "read notes", s.texts.keyed, func(b *pgx.Batch, t *tables) {
		b.Queue(t.in(sqlNotes), uuid(id)).Query(collect(&notes, func(row pgx.CollectableRow) (store.Note, error) {
			var from, to storedToken
			var actor, reason []byte
			var age int64
			if err := row.Scan(&from.state, &from.attempt, &from.owner, &to.state, &to.attempt, &to.owner, &actor, &reason, &age); err != nil {
				return store.Note{}, fmt.Errorf("read a row: %w", err)
			}
			return store.Note{ID: id, From: from.token(), To: to.token(), Actor: string(actor), Reason: string(reason), Age: micros(age)}, nil
		}))
	})
	return notes, err
}
