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

// raising is a block that fails with the SQLSTATE.
func raising(code string) string { return `DO $$ BEGIN RAISE SQLSTATE '` + code + `'; END $$` }

// If a statement was interrupted, the verdict is NotCommitted, also if the handler returns a
// change, and nothing of its transaction is stored.
func TestInterruptedStatement(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	last, failed := create("key", store.Succeeded, 1), create("key", store.Failed, 1)
	onTx := func(ctx context.Context, tx pgx.Tx, code string) error { return do(ctx, tx, raising(code)) }
	onConn := func(ctx context.Context, tx pgx.Tx, code string) error {
		_, err := tx.Conn().Exec(ctx, raising(code))
		return err
	}
	for _, code := range []string{"08006", "53100", "53200", "55P03", "57014", "57P01", "58030", "25P04"} {
		for name, row := range map[string]struct {
			interrupt func(ctx context.Context, tx pgx.Tx, code string) error
			run       func(err error) (*store.Change, error)
		}{
			"returned":           {onTx, func(err error) (*store.Change, error) { return nil, err }},
			"ignored":            {onTx, func(error) (*store.Change, error) { return &last, nil }},
			"replaced":           {onTx, func(error) (*store.Change, error) { return nil, errHandler }},
			"no change":          {onTx, func(error) (*store.Change, error) { return nil, nil }},
			"to be kept":         {onTx, func(err error) (*store.Change, error) { return &failed, fmt.Errorf("%w: %w", errHandler, err) }},
			"another is kept":    {onTx, func(error) (*store.Change, error) { return &failed, errHandler }},
			"kept, by the conn.": {onConn, func(err error) (*store.Change, error) { return &failed, errors.Join(errHandler, err) }},
		} {
			verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return row.run(errors.Join(effect(ctx, tx, "key"), row.interrupt(ctx, tx, code)))
			})
			if verdict != store.NotCommitted || !errors.Is(err, store.ErrInterrupted) || postgres.CodeOf(err) != code {
				t.Errorf("%s, %s: Atomic = %v, %v, want NotCommitted and ErrInterrupted", code, name, verdict, err)
			}
			check.Equal(t, current(t, s, last), store.Token{}, "%s, %s: the current record", code, name)
			check.Equal(t, effects(t, pool, "key"), 0, "%s, %s: effects", code, name)
		}
	}
}

// A handler that undoes an interrupted statement with a savepoint may succeed. Its failure is
// not stored, because the interrupted statement may be the reason.
func TestInterruptedStatementIsUndone(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	for _, row := range []struct {
		last    store.Change
		fail    error
		want    store.Verdict
		effects int
	}{{create("done", store.Succeeded, 1), nil, store.Committed, 1}, {create("failed", store.Failed, 1), errHandler, store.NotCommitted, 0}} {
		key := row.last.To.Key
		verdict, err := inTx(t, s, row.last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			inner, err := tx.Begin(ctx)
			if err != nil {
				return nil, err
			}
			if err := do(ctx, inner, raising("55P03")); postgres.CodeOf(err) != "55P03" {
				t.Errorf("the handler receives %v, want a lock that is not available", err)
			}
			return &row.last, errors.Join(inner.Rollback(ctx), row.fail,
				pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return effect(ctx, inner, key) }))
		})
		if verdict != row.want || errors.Is(err, store.ErrInterrupted) != (row.fail != nil) {
			t.Errorf("%s: Atomic = %v, %v, want %v", key, verdict, err, row.want)
		}
		check.Equal(t, current(t, s, row.last) == row.last.To.Token, row.want == store.Committed, "%s: the record is stored", key)
		check.Equal(t, effects(t, pool, key), row.effects, "%s: effects", key)
	}
}

// untilEnded waits until a session is over.
func untilEnded(t *testing.T, s *postgres.Store, pid uint32) {
	t.Helper()
	until(t, s.Pool(), fmt.Sprintf(`SELECT (NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %d))::int`, pid))
}

// pidOf returns the process of the transaction's session, without the handler having the
// connection itself.
func pidOf(ctx context.Context, t *testing.T, tx pgx.Tx) (pid uint32) {
	t.Helper()
	check.NoError(t, tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid))
	return pid
}

// The server ends a transaction that was idle for too long, so that other callers can have
// the record. When its process continues, the verdict is NotCommitted.
func TestIdleInTransaction(t *testing.T) {
	t.Parallel()
	patient, pool := open(t, postgres.Options{})
	// On a slow machine the server can end the session before the handler idles. Then the
	// test tries again, with another key and twice the time.
	for bound, idled := 50*time.Millisecond, false; !idled; bound *= 2 {
		s, key := newStore(t, pool, postgres.Options{IdleInTransaction: bound}), bound.String()
		last, other := create(key, store.Succeeded, 1), create(key, store.Succeeded, 2)
		verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
			var pid uint32
			err := errors.Join(effect(ctx, tx, key), tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid))
			if err != nil {
				return nil, err
			}
			idled = true
			untilEnded(t, s, pid)
			check.Result(finish(t, patient, key, &other))(t, store.Committed, "Atomic of the next caller")
			return &last, nil
		})
		if !idled && bound < time.Minute {
			continue
		}
		if !idled || verdict != store.NotCommitted || postgres.CodeOf(err) != "25P03" || !errors.Is(err, store.ErrInterrupted) {
			t.Fatalf("Atomic = %v, %v, want NotCommitted, ErrInterrupted and 25P03", verdict, err)
		}
		check.Equal(t, current(t, s, last), other.To.Token, "the current record")
		check.Equal(t, effects(t, pool, key), 1, "effects")
	}
}

// The engine never stores an interrupted statement as a failure, also with OnError: Keep.
func TestInterruptedKeyRunsAgain(t *testing.T) {
	t.Parallel()
	const bound = 50 * time.Millisecond
	s, pool := open(t, postgres.Options{})
	patient := engineOver(t, s, semel.Options{})
	op := semel.Define("op", semel.OperationOptions[int]{OnError: semel.Keep})
	for name, row := range map[string]struct {
		o         postgres.Options // no other bound, which would interrupt a slow machine's other statements
		interrupt func(ctx context.Context, tx pgx.Tx) error
	}{
		"session": {postgres.Options{}, func(ctx context.Context, tx pgx.Tx) error {
			pid := pidOf(ctx, t, tx)
			mustExec(t, pool, `SELECT pg_terminate_backend($1)`, pid)
			untilEnded(t, s, pid)
			return effect(ctx, tx, "session")
		}},
		"lock": {postgres.Options{LockTimeout: bound}, func(ctx context.Context, tx pgx.Tx) error {
			holder, err := pool.Begin(ctx)
			if err != nil {
				return err
			}
			mustExec(t, holder, `LOCK effects`)
			return errors.Join(effect(ctx, tx, "lock"), holder.Rollback(ctx))
		}},
		"statement": {postgres.Options{StatementTimeout: 2 * bound}, func(ctx context.Context, tx pgx.Tx) error {
			return do(ctx, tx, `SELECT pg_sleep(600)`)
		}},
	} {
		engine := engineOver(t, newStore(t, pool, row.o), semel.Options{})
		call := op.Call(semel.Shared(), name, 1)
		_, _, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 0, row.interrupt(ctx, tx)
		})
		check.Fails(t, err, "%s: no statement was interrupted", name)
		_, replayed, err := semel.DoTx(t.Context(), patient, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
			return 1, effect(ctx, tx, name)
		})
		check.Result(replayed, err)(t, false, "%s: DoTx once more is a replay", name)
		check.Equal(t, effects(t, pool, name), 1, "%s: effects", name)
	}
}
