package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/semelgo/semel/store"
)

// Atomic holds the database's write lock from its first statement to its end,
// with hold or without, so that nothing can take over from within; but for a
// failure that is kept, as below. If somebody else has the lock for two seconds,
// run is told Busy, with a nil transaction; without hold it is not called, and the
// error is ErrBusy.
//
// A nil change without an error commits. The COMMIT is given ten seconds.
//
// A failure of run's that is to be kept is kept in a second transaction, because a
// goroutine that run has left behind may still write in the first. Nobody else in
// this process writes in between. If another process does, the change is made of
// what stands then, or the error is ErrSuperseded; if it holds the lock for two
// seconds, ErrBusy.
//
// When run has ended the transaction itself, or passed over an error after which
// SQLite did, the error is [ErrEnded] and the verdict says what was found out
// about the transaction's writes; the change is not made.
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *sql.Tx, stands store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	mark := newMark()
	w, err := s.begin(ctx, verbMark, mark)
	switch {
	case errors.Is(err, ErrBusy) && hold:
		return tellBusy(ctx, run)
	case err != nil:
		return store.NotCommitted, s.fault(ctx, "begin", err)
	}
	defer w.leave(ctx) // also when run panics or ends its goroutine
	t := &transaction{writer: w, id: id, mark: mark}
	stands, err := t.prepare(ctx)
	if err != nil {
		return t.rollBack(ctx, s.fault(ctx, "begin", err))
	}
	last, err := run(ctx, w.tx, stands)
	return t.end(ctx, last, err)
}

func tellBusy(ctx context.Context,
	run func(ctx context.Context, tx *sql.Tx, stands store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	last, err := run(ctx, nil, store.SwapResult{Busy: true})
	if err == nil || last != nil {
		err = ErrBusy
	}
	return store.NotCommitted, err
}

// newMark draws what shows that a transaction was committed by somebody else.
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

// prepare reads what stands, and opens the savepoint that run's writes are
// behind. The mark is before it.
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

// renew changes the transaction for another one, in which the handler's failure
// is kept: a goroutine that the handler left behind has the old one still, and
// must not write beside the failure. Nobody else in this process writes in
// between; if another process does, the change finds out.
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

// apply makes the last change, if there is one, and takes the mark away. That the
// change was made is SQLite's own count of it; no COMMIT is sent before that is
// known, and none without it.
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
			t.commits.count++ // where no transaction is open any more, this statement was one
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
