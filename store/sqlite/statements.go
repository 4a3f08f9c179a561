package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/clock"
)

// statements returns the prepared statements, which db keeps for each of its
// connections. The first call prepares them before it takes a connection, because a
// pool of one connection would wait for itself.
func (s *Store) statements(ctx context.Context) (*[verbs]*sql.Stmt, error) {
	if all := s.prepared.Load(); all != nil {
		return all, nil
	}
	if s.invalid != nil {
		return nil, s.invalid
	}
	s.preparing.Lock()
	defer s.preparing.Unlock()
	if all := s.prepared.Load(); all != nil {
		return all, nil
	}
	all, err := s.prepareAgain(ctx)
	if err != nil {
		return nil, err
	}
	s.prepared.Store(all)
	return all, nil
}

// prepareAgain waits for connections that exclude readers, such as a writer without
// WAL, or the recovery after a crash. It gives up with ErrBusy.
func (s *Store) prepareAgain(ctx context.Context) (*[verbs]*sql.Stmt, error) {
	wait, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for rest := time.Millisecond; ; rest = min(2*rest, 50*time.Millisecond) {
		all, err := s.prepare(ctx)
		if !IsBusy(err) {
			return all, err
		}
		if clock.Sleep(wait, rest) != nil {
			return nil, cmp.Or(ctx.Err(), ErrBusy)
		}
	}
}

func (s *Store) prepare(ctx context.Context) (*[verbs]*sql.Stmt, error) {
	if err := checkVersion(ctx, s.db); err != nil {
		return nil, err
	}
	var all [verbs]*sql.Stmt
	for v, text := range texts() {
		stmt, err := s.db.PrepareContext(ctx, s.named(text))
		if err != nil {
			for _, done := range all[:v] {
				done.Close()
			}
			return nil, fmt.Errorf("prepare statements: %w", err)
		}
		all[v] = stmt
	}
	return &all, nil
}

// checkVersion refuses a SQLite version without a clock of milliseconds.
func checkVersion(ctx context.Context, db *sql.DB) error {
	var version string
	var clock sql.NullFloat64
	err := db.QueryRowContext(ctx, `SELECT sqlite_version(), strftime('%s', 'now', 'subsec')`).Scan(&version, &clock)
	switch {
	case err != nil:
		return fmt.Errorf("read the version of SQLite: %w", err)
	case !clock.Valid:
		return errors.New("semel/sqlite: SQLite 3.42 or newer is needed, this is " + version)
	}
	return nil
}

// session has the prepared statements within one transaction.
type session struct {
	tx    *sql.Tx
	all   *[verbs]*sql.Stmt
	bound [verbs]*sql.Stmt

	at   any   // the time, if the transaction has read it
	args []any // arguments, used for one statement after the other
}

// stmt returns a statement in the transaction. Statements never run under the
// caller's context: SQLite rolls the whole transaction back when a writing
// statement is interrupted, and would commit the following statements one by one.
func (s *session) stmt(ctx context.Context, v verb) *sql.Stmt {
	if s.bound[v] == nil {
		s.bound[v] = s.tx.StmtContext(withoutEnd(ctx), s.all[v])
	}
	return s.bound[v]
}

// exec returns the number of changed rows.
func (s *session) exec(ctx context.Context, v verb, args ...any) (int64, error) {
	result, err := s.stmt(ctx, v).ExecContext(withoutEnd(ctx), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// withoutEnd returns ctx without its end.
func withoutEnd(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
