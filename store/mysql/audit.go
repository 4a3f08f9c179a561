package mysql

import (
	"context"
	"database/sql"
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
	conn, err := s.lanes.Conn(ctx)
	if err != nil {
		return store.SwapResult{}, fault("swap with a note", err)
	}
	defer conn.Close()
	for pause := firstPause; ; pause *= 2 {
		result, err := s.swapNoted(ctx, conn, &c, &n)
		if err == nil {
			return result, nil
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

func (s *Store) swapNoted(ctx context.Context, conn *sql.Conn, c *store.Change, n *store.Note) (store.SwapResult, error) {
	if _, err := conn.ExecContext(ctx, sqlBegin); err != nil {
		return store.SwapResult{}, err
	}
	in := s.in(conn)
	w := &swapper{conn: conn, in: in, changes: []store.Change{*c}, results: make([]store.SwapResult, 1)}
	made, err := w.make(ctx, 0)
	if err == nil && made == 0 {
		err = w.look(ctx, []int{0})
	} else if err == nil && made > 0 {
		w.applied(0)
	}
	if err != nil {
		return store.SwapResult{}, err
	}
	if result := w.results[0]; result.Applied(*c) {
		_, err := in.ExecContext(ctx, sqlNote, c.To.ID[:], uint64(c.If.State), c.If.Attempt, c.If.Owner,
			uint64(c.To.State), c.To.Attempt, c.To.Owner, []byte(n.Actor), []byte(n.Reason))
		if err != nil {
			return store.SwapResult{}, err
		}
	}
	_, err = conn.ExecContext(ctx, `COMMIT`)
	return w.results[0], err
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
