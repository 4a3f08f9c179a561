package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// SwapNoted is Swap of one change. It takes the record, the tokens and the age of the
// note from the change. Notes remain when their record is purged.
func (s *Store) SwapNoted(ctx context.Context, c store.Change, n store.Note) (store.SwapResult, error) {
	if err := c.Check(maxOutcome); err != nil {
		return store.SwapResult{Err: fmt.Errorf("swap %w", err)}, nil
	}
	f, err := s.dialect(ctx)
	if err != nil {
		return store.SwapResult{}, fault("swap with a note", err)
	}
	conn, err := s.lanes.Conn(ctx)
	if err != nil {
		return store.SwapResult{}, fault("swap with a note", err)
	}
	defer conn.Close()
	for pause := firstPause; ; pause *= 2 {
		w := &swapper{dialect: f, conn: conn, in: s.in(conn), changes: []store.Change{c}, results: make([]store.SwapResult, 1)}
		err := w.swapNoted(ctx, &n)
		if err == nil {
			if err := s.confirmOn(ctx, f, conn, w.seen); err != nil {
				return store.SwapResult{}, fault("swap with a note", err)
			}
			return w.results[0], nil
		}
		if failed := rollBack(ctx, conn); failed != nil {
			return store.SwapResult{}, fault("swap with a note", errors.Join(err, failed))
		}
		switch {
		case !isBusy(err):
			return store.SwapResult{}, fault("swap with a note", err)
		case pause > lastPause, rest(ctx, pause) != nil:
			return store.SwapResult{Busy: true}, nil
		}
	}
}

// swapNoted makes the only change with its note.
func (w *swapper) swapNoted(ctx context.Context, n *store.Note) error {
	if _, err := w.conn.ExecContext(ctx, sqlBegin); err != nil {
		return err
	}
	made, err := w.make(ctx, 0)
	if err == nil && made == 0 {
		err = w.look(ctx, []int{0})
	} else if err == nil && made > 0 {
		w.applied(0)
	}
	if err != nil {
		return err
	}
	if c := &w.changes[0]; w.results[0].Applied(*c) {
		_, err := w.in.ExecContext(ctx, sqlNote, c.To.ID[:], uint64(c.If.State), c.If.Attempt, c.If.Owner,
			uint64(c.To.State), c.To.Attempt, c.To.Owner, []byte(n.Actor), []byte(n.Reason))
		if err != nil {
			return err
		}
	}
	_, err = w.conn.ExecContext(ctx, `COMMIT`)
	return err
}

// Notes returns the notes of a record, also after it was purged.
func (s *Store) Notes(ctx context.Context, id store.ID) ([]store.Note, error) {
	rows, err := s.own.QueryContext(ctx, sqlNotes, id[:])
	if err != nil {
		return nil, fault("read notes", err)
	}
	defer rows.Close()
	var notes []store.Note
	for rows.Next() {
		n := store.Note{ID: id}
		var age int64
		if err := rows.Scan(&n.From.State, &n.From.Attempt, &n.From.Owner, &n.To.State, &n.To.Attempt, &n.To.Owner, &n.Actor, &n.Reason, &age); err != nil {
			return nil, fault("read notes", err)
		}
		n.Age = micros(age)
		notes = append(notes, n)
	}
	if err := rows.Err(); err != nil {
		return nil, fault("read notes", err)
	}
	return notes, nil
}
