package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/semelgo/semel/store"
)

// Atomic holds the database's write lock from its first statement to its end, with
// or without hold, so that no takeover is possible meanwhile; a stored failure is
// the exception below. If another connection has the lock for two seconds, run
// receives Busy and a nil transaction; without hold it is not called, and the error
// is ErrBusy.
//
// A nil change without an error commits. The COMMIT has a limit of ten seconds.
//
// A failure of run is stored in a second transaction, because a goroutine that run
// has left behind may still write in the first one. No other caller in this process
// writes in between. If another process does, the change is applied to the record
// as it is then, or the error is ErrSuperseded; if it holds the lock for two
// seconds, ErrBusy.
//
// If run has ended the transaction itself, or ignored an error after which SQLite
// ended it, the error is [ErrEnded], and the verdict says what is known about the
// transaction's writes. The change is not made.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	mark := newMark()
	w, err := s.begin(ctx, verbMark, mark)
	switch {
	case errors.Is(err, ErrBusy) && hold:
		return runBusy(ctx, run)
	case err != nil:
		return store.NotCommitted, s.fault(ctx, "begin", err)
	}
	defer w.leave(ctx) // also when run panics or ends its goroutine
	t := &transaction{writer: w, id: id, mark: mark}
	current, err := t.prepare(ctx)
	if err != nil {
		return t.rollBack(ctx, s.fault(ctx, "begin", err))
	}
	last, err := run(ctx, w.tx, current)
	return t.end(ctx, last, err)
}

func runBusy(ctx context.Context,
	run func(ctx context.Context, tx *sql.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	last, err := run(ctx, nil, store.SwapResult{Busy: true})
	if err == nil || last != nil {
		err = ErrBusy
	}
	return store.NotCommitted, err
}

// newMark returns a random mark, which shows whether another statement has
// committed the transaction.
func newMark() int64 {
	for {
		if mark := rand.Int64(); mark != 0 {
			return mark
		}
	}
}

// transaction is one Atomic.
type transaction struct {
	*writer

	id      store.ID
	mark    int64
	commits commits
}

// prepare reads the current record, and opens the savepoint before run's writes.
// The mark is written before it.
func (t *transaction) prepare(ctx context.Context) (store.SwapResult, error) {
	t.commits = countCommits(t.conn)
	if _, err := t.exec(ctx, verbSave); err != nil {
		return store.SwapResult{}, err
	}
	return t.get(ctx, t.id)
}

func (t *transaction) end(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	closing := verbKeep
	if failed != nil {
		closing = verbUndo
	}
	if _, err := t.exec(ctx, closing); err != nil {
		return t.gone(ctx, err, last, failed)
	}
	if failed != nil && last == nil {
		return t.rollBack(ctx, failed)
	}
	if failed != nil {
		if verdict, err := t.renew(ctx); err != nil {
			return verdict, err
		}
	}
	if err := t.apply(ctx, last); err != nil {
		return t.rollBack(ctx, err)
	}
	verdict, err := t.commit(ctx)
	if err != nil {
		err = fmt.Errorf("commit: %w", err)
	}
	return verdict, err
}

// renew replaces the transaction by another one, in which the handler's failure is
// stored. A goroutine that the handler left behind has the old one, and must not
// write together with the failure. No other caller in this process writes in
// between. If another process does, the change fails.
func (t *transaction) renew(ctx context.Context) (store.Verdict, error) {
	switch err := t.undo(ctx); {
	case errors.Is(err, sql.ErrTxDone):
		return t.find(ctx, true), fmt.Errorf("%w: %w", ErrEnded, err)
	case err != nil:
		return t.find(ctx, true), fmt.Errorf("roll back: %w", err)
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.patience)
	defer cancel()
	err := t.lockAgain(wait, verbMark, t.mark)
	if err != nil && errors.Is(err, wait.Err()) {
		err = ErrBusy
	}
	if err != nil {
		return store.NotCommitted, t.store.fault(ctx, "begin again", err)
	}
	return store.Unknown, nil
}

// apply makes the last change, if there is one, and removes the mark. SQLite's
// count of changed rows shows whether the change was made; COMMIT is sent only
// after that.
func (t *transaction) apply(ctx context.Context, last *store.Change) error {
	if last != nil {
		if last.To.ID != t.id {
			return fmt.Errorf("the last change is of record %s, not of %s", last.To.ID, t.id)
		}
		if err := check(last); err != nil {
			return err
		}
		v, args := statement(nil, nil, last)
		made, err := t.exec(ctx, v.last(), append(args, t.mark)...)
		if err != nil {
			return fmt.Errorf("last change: %w", err)
		}
		if made != 1 {
			t.commits.count++ // outside of a transaction this statement was one itself
			return fmt.Errorf("record %s: %w", t.id, store.ErrSuperseded)
		}
	}
	unmarked, err := t.exec(ctx, verbUnmark, t.mark)
	switch {
	case err != nil:
		return fmt.Errorf("last change: %w", err)
	case unmarked != 1:
		return fmt.Errorf("%w: its mark is gone", ErrEnded)
	}
	return nil
}
