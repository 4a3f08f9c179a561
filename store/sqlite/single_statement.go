package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// errNeedsTx means that a change must be made in a transaction.
var errNeedsTx = errors.New("semel/sqlite: not in one statement")

// hasRoom reports whether a connection is available at once. A single statement
// cannot give up waiting for one with the certainty that it is not executed later.
func (s *Store) hasRoom() bool {
	stats := s.db.Stats()
	return stats.MaxOpenConnections == 0 || stats.InUse < stats.MaxOpenConnections
}

// swapAlone makes one change by one statement, which SQLite commits by itself. That
// saves the statements of a transaction. If the change was not made, it reads the
// current record afterwards.
func (s *Store) swapAlone(ctx context.Context, c *store.Change) (store.SwapResult, error) {
	all, err := s.statements(ctx)
	switch {
	case errors.Is(err, ErrBusy):
		return store.SwapResult{Busy: true}, nil
	case err != nil:
		return store.SwapResult{}, s.fault(ctx, "swap", err)
	}
	v, args := statement(nil, nil, c)
	made, err := s.execAlone(ctx, all[v], args)
	switch {
	case err == nil && made == 1:
		return store.SwapResult{Token: c.To.Token}, nil
	case errors.Is(err, ErrBusy):
		return store.SwapResult{Busy: true}, nil
	case isRefusal(err):
		return store.SwapResult{Err: fmt.Errorf("swap record %s: %w", c.To.ID, err)}, nil
	case err != nil:
		return store.SwapResult{}, s.fault(ctx, "swap", err)
	}
	return s.currentInstead(ctx, c)
}

// currentInstead reads why c was not made. If the current record has c's token,
// another process has made the same change in between.
func (s *Store) currentInstead(ctx context.Context, c *store.Change) (store.SwapResult, error) {
	answers, err := s.Get(ctx, []store.ID{c.To.ID})
	if err != nil {
		return store.SwapResult{}, fmt.Errorf("swap: %w", err)
	}
	answer := answers[0]
	switch {
	case answer.Busy:
	case answer.Token == c.To.Token: // the change is repeated
		answer.Record = nil
	case answer.Token == c.If && !c.IfDue:
		return answer, errNeedsTx
	}
	return answer, nil
}

// execAlone takes the right to write for one statement. It gives up with ErrBusy.
// After ErrBusy, and if SQLite refuses the statement, nothing was written.
func (s *Store) execAlone(ctx context.Context, stmt *sql.Stmt, args []any) (made int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	wait, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	select {
	case s.gate <- struct{}{}:
	case <-wait.Done():
		return 0, cmp.Or(ctx.Err(), ErrBusy)
	}
	for rest := time.Millisecond; ; rest = min(2*rest, 50*time.Millisecond) {
		answers := make(chan execResult, 1)
		go func() {
			growStack()
			answers <- execUnending(ctx, stmt, args)
		}()
		bound := time.NewTimer(s.commitBound)
		select {
		case a := <-answers:
			bound.Stop()
			if !IsBusy(a.err) {
				<-s.gate
				return a.made, a.err
			}
		case <-bound.C:
			go func() { <-answers; <-s.gate }() // the statement goes on, and keeps the right until it has ended
			return 0, fmt.Errorf("no answer to the statement: %w", context.DeadlineExceeded)
		}
		if clock.Sleep(wait, rest) != nil {
			<-s.gate
			return 0, cmp.Or(ctx.Err(), ErrBusy)
		}
	}
}

// execResult is the number of changed rows, or the error.
type execResult struct {
	made int64
	err  error
}

func execUnending(ctx context.Context, stmt *sql.Stmt, args []any) execResult {
	result, err := stmt.ExecContext(withoutEnd(ctx), args...)
	if err != nil {
		return execResult{err: err}
	}
	made, err := result.RowsAffected()
	return execResult{made, err}
}
