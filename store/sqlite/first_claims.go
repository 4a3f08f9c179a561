package sqlite

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// errBatchRefused means that SQLite refused one of the claims in a statement. The
// transaction must be rolled back: a trigger after the row's insert may have
// refused it, and the row exists.
var errBatchRefused = errors.New("semel/sqlite: not together")

// openBatch makes first claims, and sets the results of those that it has made
// or that conflict. It leaves fewer than openFew claims to single statements.
func (s *session) openBatch(ctx context.Context, changes []store.Change, answers []store.SwapResult) error {
	ctx = withoutEnd(ctx)
	if len(changes) < readsTime {
		return nil
	}
	if err := s.readTime(ctx, len(changes)); err != nil {
		return err
	}
	var all []int
	for i := range changes {
		if answers[i].Err == nil && changes[i].If == (store.Token{}) && opens(&changes[i].To) {
			all = append(all, i)
		}
	}
	for len(all) >= openFew {
		n, v := openFew, verbOpenFew
		if len(all) >= openMany {
			n, v = openMany, verbOpenMany
		}
		err := s.openSome(ctx, v, changes, all[:n], answers)
		switch {
		case isRefusal(err):
			return errBatchRefused
		case err != nil:
			return err
		}
		all = all[n:]
	}
	return nil
}

// openSome makes some of the changes by one statement. If it has not made all, it
// reads the current records: a record with our owner is our own claim.
func (s *session) openSome(ctx context.Context, v verb, changes []store.Change, some []int, answers []store.SwapResult) error {
	args := append(s.args[:0], s.at)
	for _, i := range some {
		args = openArgs(args, &changes[i].To)
	}
	s.args = args
	made, err := s.exec(ctx, v, args...)
	if err != nil {
		return err
	}
	if made == int64(len(some)) {
		for _, i := range some {
			answers[i] = store.SwapResult{Token: changes[i].To.Token}
		}
		return nil
	}
	return s.readCurrent(ctx, changes, some, answers)
}

func (s *session) readCurrent(ctx context.Context, changes []store.Change, some []int, answers []store.SwapResult) error {
	ids, found := make([]store.ID, len(some)), make([]store.SwapResult, len(some))
	for n, i := range some {
		ids[n] = changes[i].To.ID
	}
	if err := getSome(ctx, s.stmt(ctx, verbGetMany), ids, found); err != nil {
		return err
	}
	for n, i := range some {
		if answers[i] = found[n]; answers[i].Token == changes[i].To.Token {
			answers[i].Record = nil
		}
	}
	return nil
}
