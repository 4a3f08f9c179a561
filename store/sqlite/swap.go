package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Swap applies all changes in one transaction, and one change in one statement. If
// the database is locked by somebody else for two seconds, all of them are Busy.
// It fails as a whole, and then has written nothing, when ctx is done before the
// commit or, of one change, before the statement, when the batch is larger than
// MaxBatch, or when it names an ID twice.
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
		if !errors.Is(err, errTogether) {
			answers[0] = answer
			return answers, err
		}
	}
	return s.swapBatch(ctx, &batch{groups: [][]store.Change{changes}, answers: answers})
}

// SwapTx is Swap within tx, a transaction of the *sql.DB that New was given. A
// transaction that has read before it writes for the first time can find that
// somebody else has written meanwhile; it then fails, for good: begin it
// immediate, as the connections of [Open] do.
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

// busy says of all that were not refused that nothing is known.
func busy(answers []store.SwapResult) []store.SwapResult {
	for i := range answers {
		answers[i] = store.SwapResult{Err: answers[i].Err, Busy: answers[i].Err == nil}
	}
	return answers
}

// readsTime is from how many changes on it pays to read the time once for all.
const readsTime = 8

// swapAll answers each change that has no answer yet. On an error the
// transaction is not to be committed.
func (s *session) swapAll(ctx context.Context, changes []store.Change, answers []store.SwapResult) error {
	ctx = unending(ctx)
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

// readTime reads the time for n changes, once, if they are enough.
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
	if err == nil && answer.Token == c.To.Token { // asked again
		answer.Record = nil
	}
	return answer, err
}
