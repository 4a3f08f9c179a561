package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// errTogether says that a change is to be made in a transaction, as several are.
var errTogether = errors.New("semel/sqlite: not in one statement")

// hasRoom reports whether a connection is to be had at once. A statement by itself
// cannot give up waiting for one and be sure that it is not made later.
func (s *Store) hasRoom() bool {
	stats := s.db.Stats()
	return stats.MaxOpenConnections == 0 || stats.InUse < stats.MaxOpenConnections
}

// swapAlone makes one change by one statement, which SQLite commits by itself: a
// caller who is alone pays for no transaction around it. What it is told when the
// change was not made, it reads afterwards.
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
	return s.standsInstead(ctx, c)
}

// standsInstead reads why c was not made. If what c asks for stands now, another
// process has written in between.
func (s *Store) standsInstead(ctx context.Context, c *store.Change) (store.SwapResult, error) {
	answers, err := s.Get(ctx, []store.ID{c.To.ID})
	if err != nil {
		return store.SwapResult{}, fmt.Errorf("swap: %w", err)
	}
	answer := answers[0]
	switch {
	case answer.Busy:
	case answer.Token == c.To.Token: // asked again
		answer.Record = nil
	case answer.Token == c.If && !c.IfDue:
		return answer, errTogether
	}
	return answer, nil
}

// execAlone takes the right to write for one statement. It gives up with ErrBusy;
// then, and when SQLite refuses the statement, nothing was written.
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
		answers := make(chan execAnswer, 1)
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
			go func() { <-answers; <-s.gate }() // it goes on, and has the right until it is done
			return 0, fmt.Errorf("no answer to the statement: %w", context.DeadlineExceeded)
		}
		if pause(wait, rest) != nil {
			<-s.gate
			return 0, cmp.Or(ctx.Err(), ErrBusy)
		}
	}
}

// execAnswer is how many rows a statement has changed.
type execAnswer struct {
	made int64
	err  error
}

func execUnending(ctx context.Context, stmt *sql.Stmt, args []any) execAnswer {
	result, err := stmt.ExecContext(unending(ctx), args...)
	if err != nil {
		return execAnswer{err: err}
	}
	made, err := result.RowsAffected()
	return execAnswer{made, err}
}
