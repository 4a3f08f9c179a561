package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// SwapNoted is Swap of one change. It takes the record, the tokens and the age of
// the note from the change. Notes are stored in the table semel_notes, and remain
// when their record is purged.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	answers := make([]store.SwapResult, 1)
	items, err := checkAll(ctx, []store.Change{c}, answers)
	if err != nil {
		return store.SwapResult{}, s.fault("swap with a note", err)
	}
	if len(items) == 0 {
		return answers[0], nil
	}
	t, err := s.tables(ctx)
	if err != nil {
		return store.SwapResult{}, s.fault("swap with a note", err)
	}
	it := items[0]
	from, to := stored(c.If), stored(c.To.Token)
	k, args := statement(&c)
	text := t.noted(k, len(args))
	args = append(args, uuid(c.To.ID), from.state, from.attempt, from.owner, to.state, to.attempt, to.owner,
		[]byte(n.Actor), []byte(n.Reason))
	err = trip(ctx, poolSender{s}, s.texts.swap.one, func(b *pgx.Batch) {
		b.Queue(text, args...).Exec(func(tag pgconn.CommandTag) error {
			it.made = tag.RowsAffected() == 1
			return nil
		})
	})
	w := swapper{in: poolSender{s}, on: t, frames: &s.texts.swap, confirmed: s.replicated.Load()}
	missed := []swapItem{it}
	switch {
	case err != nil:
		missed, err = w.answerAlone(missed, err)
	case it.made:
		it.answer.Token, missed = c.To.Token, nil
	}
	if err == nil {
		err = w.answerFromCurrent(ctx, missed)
	}
	if err != nil {
		return store.SwapResult{}, s.fault("swap with a note", err)
	}
	return answers[0], nil
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	t, err := s.tables(ctx)
	if err != nil {
		return nil, s.fault("read notes", err)
	}
	var notes []numberedNote
	err = trip(ctx, poolSender{s}, frame{before: []string{s.texts.byKey}}, func(b *pgx.Batch) {
		b.Queue(t.notes, uuid(id)).Query(func(rows pgx.Rows) (err error) {
			notes, err = pgx.CollectRows(rows, readNote)
			return err
		})
	})
	if err != nil {
		return nil, s.fault("read notes", err)
	}
	// The database does not sort, because it could then use an index on that order
	// for the search.
	slices.SortFunc(notes, func(a, b numberedNote) int { return cmp.Compare(a.number, b.number) })
	all := make([]store.Note, len(notes))
	for i, n := range notes {
		all[i], all[i].ID = n.Note, id
	}
	return all, nil
}

// numberedNote is a note with its number.
type numberedNote struct {
	store.Note

	number int64
}

func readNote(row pgx.CollectableRow) (numberedNote, error) {
	var n numberedNote
	var from, to storedToken
	var actor, reason []byte
	var age int64
	err := row.Scan(&n.number, &from.state, &from.attempt, &from.owner, &to.state, &to.attempt, &to.owner, &actor, &reason, &age)
	if err != nil {
		return n, fmt.Errorf("read a row: %w", err)
	}
	n.From, n.To, n.Age = from.token(), to.token(), micros(age)
	n.Actor, n.Reason = string(actor), string(reason)
	return n, nil
}
