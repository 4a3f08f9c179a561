package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Swap applies all changes in one transaction, and a single change in one
// statement. If another connection locks the database for two seconds, all changes
// are Busy. Swap fails as a whole, and has then written nothing, if ctx ends before
// the commit or, for a single change, before the statement, if the batch is larger
// than MaxBatch, or if it has a duplicate ID.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	answers, valid := refuse(changes)
	switch {
	case valid == 0:
		return answers, nil
	case len(changes) == 1 && s.hasRoom():
		answer, err := s.swapAlone(ctx, &changes[0])
		if !errors.Is(err, errNeedsTx) {
			answers[0] = answer
			return answers, err
		}
	}
	return s.swapBatch(ctx, &batch{groups: [][]store.Change{changes}, answers: answers})
}

// SwapTx is Swap within tx, a transaction of the *sql.DB that New was given. A
// transaction that reads before its first write can find that another connection
// has written meanwhile; it then fails for good. Begin it immediate, as connections
// of [Open] do.
func (s *Store) SwapTx(ctx context.Context, tx *sql.Tx, changes []store.Change) ([]store.SwapResult, error) {
	if tx == nil {
		return nil, errors.New("swap: the transaction is nil")
	}
	if err := checkBatch(ctx, changes); err != nil {
		return nil, err
	}
	all, err := s.statements(ctx)
	if err != nil {
		return nil, s.fault(ctx, "swap", err)
	}
	answers, _ := refuse(changes)
	in := &session{tx: tx, all: all}
	err = in.swapAll(ctx, changes, answers)
	switch {
	case err == nil:
		return answers, nil
	case IsBusy(err) && codeOf(err) != codeBusySnapshot:
		return busy(answers), nil
	default:
		return nil, s.fault(ctx, "swap", err)
	}
}

// busy marks all results without an error as Busy.
func busy(answers []store.SwapResult) []store.SwapResult {
	for i := range answers {
		answers[i] = store.SwapResult{Err: answers[i].Err, Busy: answers[i].Err == nil}
	}
	return answers
}

// readsTime is the number of changes from which reading the time once is faster.
const readsTime = 8

// swapAll makes each change that has no result yet. After an error the transaction
// must not be committed.
func (s *session) swapAll(ctx context.Context, changes []store.Change, answers []store.SwapResult) error {
	ctx = withoutEnd(ctx)
	if err := s.readTime(ctx, len(changes)); err != nil {
		return err
	}
	for i := range changes {
		if answers[i].Err != nil || answers[i].Token != (store.Token{}) {
			continue
		}
		answer, err := s.swap(ctx, &changes[i])
		switch {
		case err == nil:
			answers[i] = answer
		case isRefusal(err):
			answers[i].Err = fmt.Errorf("swap record %s: %w", changes[i].To.ID, err)
		default:
			return err
		}
	}
	return nil
}

// readTime reads the time once, if n changes are enough.
func (s *session) readTime(ctx context.Context, n int) error {
	if n < readsTime || s.at != nil {
		return nil
	}
	if err := s.stmt(ctx, verbNow).QueryRowContext(ctx).Scan(&s.at); err != nil {
		return fmt.Errorf("read the time: %w", err)
	}
	return nil
}

func (s *session) swap(ctx context.Context, c *store.Change) (store.SwapResult, error) {
	v, args := statement(s.args[:0], s.at, c)
	s.args = args
	n, err := s.exec(ctx, v, args...)
	if err != nil {
		return store.SwapResult{}, err
	}
	if n == 1 {
		return store.SwapResult{Token: c.To.Token}, nil
	}
	answer, err := s.get(ctx, c.To.ID)
	if err == nil && answer.Token == c.To.Token { // the change is repeated
		answer.Record = nil
	}
	return answer, err
}
