package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// If a statement was interrupted, the verdict is NotCommitted, also if the handler returns a
// change, and nothing of its transaction is stored.
func TestStatementBrokenOff(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last, failed := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	for _, code := range []string{"08006", "53100", "53200", "55P03", "57014", "57P01", "58030", "25P04"} {
		for name, say := range map[string]func(err error) (*store.Change, error){
			"told":        func(err error) (*store.Change, error) { return nil, err },
			"passed over": func(error) (*store.Change, error) { return &last, nil },
			"replaced":    func(error) (*store.Change, error) { return nil, errHandler },
			"lost":        func(error) (*store.Change, error) { return nil, nil },
			"to be kept":  func(err error) (*store.Change, error) { return &failed, fmt.Errorf("%w: %w", errHandler, err) },
			"kept, other": func(error) (*store.Change, error) { return &failed, errHandler },
		} {
			verdict, err := s.Atomic(t.Context(), last.To.ID, true,
				func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
					return say(errors.Join(effect(ctx, tx, "key"), raise(ctx, tx, code)))
				})
			if verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || postgres.CodeOf(err) != code {
				t.Errorf("%s, %s: Atomic = %v, %v, want NotCommitted and ErrInterrupted", code, name, verdict, err)
			}
			if n := effects(t, pool, "key"); n != 0 || current(t, s, last) != (store.Token{}) {
				t.Errorf("%s, %s: %d effects and %+v, want nothing", code, name, n, current(t, s, last))
			}
		}
	}
}

// The same holds for an error of the connection that the handler returns.
func TestStatementInterruptedOnTheConnection(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	failed := create("key", store.Failed, 1)
	verdict, err := s.Atomic(t.Context(), failed.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			_, err := tx.Conn().Exec(ctx, `DO $$ BEGIN RAISE SQLSTATE '57014'; END $$`)
			return &failed, errors.Join(errHandler, err)
		})
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || current(t, s, failed) != (store.Token{}) {
		t.Errorf("Atomic = %v, %v, and the current record is %+v, want NotCommitted, ErrInterrupted and nothing", verdict, err, current(t, s, failed))
	}
}

// raise has a statement fail with the SQLSTATE.
func raise(ctx context.Context, tx pgx.Tx, code string) error {
	return do(ctx, tx, `DO $$ BEGIN RAISE SQLSTATE '`+code+`'; END $$`)
}

// A handler that undoes an interrupted statement with a savepoint may succeed. Its failure is
// not stored, because the interrupted statement may be the reason.
func TestStatementInterruptedAndUndone(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	done, failed := create("done", store.Succeeded, 1), create("failed", store.Failed, 1)
	for _, row := range []struct {
		last store.Change
		fail error
		want store.Verdict
	}{{done, nil, store.Committed}, {failed, errHandler, store.NotCommitted}} {
		verdict, err := s.Atomic(t.Context(), row.last.To.ID, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				inner, err := tx.Begin(ctx)
				if err != nil {
					return nil, err
				}
				if err := raise(ctx, inner, "55P03"); postgres.CodeOf(err) != "55P03" {
					t.Errorf("the handler receives %v, want a lock that is not available", err)
				}
				return &row.last, errors.Join(inner.Rollback(ctx), effect(ctx, tx, row.last.To.Key), row.fail)
			})
		if verdict != row.want || errors.Is(err, store.ErrInterrupted) != (row.fail != nil) {
			t.Errorf("Atomic = %v, %v, want %v", verdict, err, row.want)
		}
		stored := current(t, s, row.last) == row.last.To.Token
		if want := row.want == store.Committed; stored != want || (effects(t, pool, row.last.To.Key) == 1) != want {
			t.Errorf("%s: %d effects, and the record is stored: %v", row.last.To.Key, effects(t, pool, row.last.To.Key), stored)
		}
	}
}

// An interrupted statement is never stored as a failure, also with OnError: Keep.
func TestKeyWhoseAttemptWasBrokenOff(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	const bound = 50 * time.Millisecond
	s := newStore(t, pool, postgres.Options{LockTimeout: bound, StatementTimeout: 2 * bound})
	engine := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure}))(t)
	patient := check.Must(semel.New(newStore(t, pool, postgres.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	op := semel.Define("op", semel.OperationOptions[int]{OnError: semel.Keep})
	for name, breakOff := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"session": func(ctx context.Context, tx pgx.Tx) error {
			mustEnd(t, s, tx.Conn().PgConn().PID(), func(pid uint32) {
				mustExec(t, pool, `SELECT pg_terminate_backend($1)`, pid)
			})
			return effect(ctx, tx, "session")
		},
		"lock": func(ctx context.Context, tx pgx.Tx) error {
			holder, err := pool.Begin(ctx)
			if err != nil {
				return err
			}
			mustExec(t, holder, `LOCK effects`)
			return errors.Join(effect(ctx, tx, "lock"), holder.Rollback(ctx))
		},
		"statement": func(ctx context.Context, tx pgx.Tx) error { return do(ctx, tx, `SELECT pg_sleep(600)`) },
	} {
		call := op.Call(semel.Shared(), name, 1)
		_, _, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 0, breakOff(ctx, tx)
		})
		check.Fails(t, err, "%s: no statement was interrupted", name)
		_, replayed, err := semel.DoTx(t.Context(), patient, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 1, effect(ctx, tx, name)
		})
		if replayed || err != nil || effects(t, pool, name) != 1 {
			t.Errorf("%s: asked again, %v, %v with %d effects, want to be run", name, replayed, err, effects(t, pool, name))
		}
	}
}
