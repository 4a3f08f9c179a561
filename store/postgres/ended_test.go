package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

var errHandler = errors.New("the handler's error")

// do runs a statement as the simple protocol does, which takes several.
func do(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// A handler that ends the transaction itself gets an error, and the verdict is correct.
func TestHandlerEndsTheTransaction(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	mustExec(t, pool, `CREATE TABLE early (n int PRIMARY KEY)`)
	mustExec(t, pool, `CREATE TABLE late (n int REFERENCES early DEFERRABLE INITIALLY DEFERRED)`)
	last := create("key", store.Succeeded, 1)
	for _, row := range []struct {
		name    string
		run     func(ctx context.Context, tx pgx.Tx) (*store.Change, error)
		want    store.Verdict
		effects int
		plain   bool // the handler's own error is enough
	}{
		{
			name: "COMMIT",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT and an error",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT and a failure to be kept",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				failed := create("key", store.Failed, 1)
				return &failed, errors.Join(errHandler, effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT, then more, which is refused",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT`))
				mustRefuse(t, tx)
				return &last, err
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT, then more on the connection",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				_, err := tx.Conn().Exec(ctx, `INSERT INTO effects VALUES ('key'); COMMIT; INSERT INTO effects VALUES ('key')`)
				return &last, err
			},
			want: store.Committed, effects: 2,
		},
		{
			name: "COMMIT and BEGIN",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT; BEGIN`), effect(ctx, tx, "key"))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT and BEGIN, and an error",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), do(ctx, tx, `COMMIT; BEGIN`))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "COMMIT AND CHAIN, and an aborted transaction",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `COMMIT AND CHAIN`))
				return nil, errors.Join(errHandler, err, do(ctx, tx, `SELECT 1 / 0`))
			},
			want: store.Committed, effects: 1,
		},
		{
			name: "ROLLBACK",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, ` Rollback; `))
			},
			want: store.NotCommitted,
		},
		{
			name: "ROLLBACK and an error",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return nil, errors.Join(errHandler, effect(ctx, tx, "key"), do(ctx, tx, `ROLLBACK`))
			},
			want: store.NotCommitted, plain: true,
		},
		{
			name: "ROLLBACK, then more",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				return &last, do(ctx, tx, `ROLLBACK; INSERT INTO effects VALUES ('key')`)
			},
			want: store.Unknown, effects: 1,
		},
		{
			name: "ROLLBACK, then more on the connection",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := do(ctx, tx, `ROLLBACK`)
				_, more := tx.Conn().Exec(ctx, `INSERT INTO effects VALUES ('key')`)
				return &last, errors.Join(err, more)
			},
			want: store.Unknown, effects: 1,
		},
		{
			name: "the store's savepoint released",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				inner, err := tx.Begin(ctx) // which is put into it
				return &last, errors.Join(err, effect(ctx, inner, "key"), do(ctx, tx, `RELEASE SAVEPOINT semel_run`), do(ctx, tx, `SELECT 1 / 0`))
			},
			want: store.NotCommitted,
		},
		{
			name: "ROLLBACK AND CHAIN, then more, then ROLLBACK",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := errors.Join(do(ctx, tx, `ROLLBACK AND CHAIN`), effect(ctx, tx, "key"), do(ctx, tx, `COMMIT AND CHAIN`))
				return &last, errors.Join(err, do(ctx, tx, `ROLLBACK`))
			},
			want: store.Unknown, effects: 1,
		},
		{
			name: "ROLLBACK with more behind it",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				b := &pgx.Batch{}
				b.Queue(`ROLLBACK`)
				b.Queue(`INSERT INTO effects VALUES ('key')`)
				return &last, tx.SendBatch(ctx, b).Close()
			},
			want: store.Unknown, effects: 1,
		},
		{
			name: "ROLLBACK, then a large object",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				objects := tx.LargeObjects()
				err := do(ctx, tx, `ROLLBACK`)
				_, more := objects.Create(ctx, 0)
				return nil, errors.Join(errHandler, err, more)
			},
			want: store.Unknown,
		},
		{
			name: "COMMIT that is refused",
			run: func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `INSERT INTO late VALUES (1)`))
				if refused := do(ctx, tx, `COMMIT`); postgres.CodeOf(refused) != "23503" {
					t.Errorf("COMMIT = %v, want a foreign key that is not kept", refused)
				}
				return &last, err
			},
			want: store.NotCommitted,
		},
	} {
		mustExec(t, pool, `TRUNCATE effects`)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				return row.run(ctx, tx)
			})
		if verdict != row.want || err == nil || errors.Is(err, postgres.ErrEnded) == row.plain || errors.Is(err, store.ErrTxEndedByHandler) == row.plain {
			t.Errorf("%s: Atomic = %v, %v, want %v, ErrEnded and ErrTxEndedByHandler", row.name, verdict, err, row.want)
		}
		if row.plain && !errors.Is(err, errHandler) {
			t.Errorf("%s: Atomic fails with %v, want the handler's own error", row.name, err)
		}
		check.Equal(t, effects(t, pool, "key"), row.effects, "%s: effects", row.name)
		mustBeFree(t, s, last)
	}
}

// mustRefuse requires that a transaction that was ended runs nothing more.
func mustRefuse(t *testing.T, tx pgx.Tx) {
	t.Helper()
	ctx, table := t.Context(), pgx.Identifier{"effects"}
	_, exec := tx.Exec(ctx, `INSERT INTO effects VALUES ('key')`)
	rows, query := tx.Query(ctx, `SELECT 1`)
	_, begin := tx.Begin(ctx)
	_, prepare := tx.Prepare(ctx, "one", `SELECT 1`)
	_, into := tx.CopyFrom(ctx, table, []string{"key"}, pgx.CopyFromRows([][]any{{"key"}}))
	var b pgx.Batch
	b.Queue(`INSERT INTO effects VALUES ('key')`)
	for i, err := range []error{
		exec, query, rows.Err(), tx.QueryRow(ctx, `SELECT 1`).Scan(), begin, prepare, into, tx.SendBatch(ctx, &b).Close(),
	} {
		check.ErrorIs(t, err, postgres.ErrEnded, "call %d of a transaction that is over", i)
	}
	if rows.Next() {
		t.Error("a transaction that is over gives rows")
	}
}

// mustBeFree requires that nothing is left of a transaction, and that the next
// one works, at the latest when the server knows that a connection is lost.
func mustBeFree(t *testing.T, s *postgres.Store, last store.Change) {
	t.Helper()
	if token := current(t, s, last); token != (store.Token{}) {
		t.Errorf("the current record is %+v, want no outcome", token)
	}
	verdict, err := whenFree(t, s, last.To.ID, func(context.Context, pgx.Tx) (*store.Change, error) { return nil, errHandler })
	check.ResultIs(verdict, err)(t, store.NotCommitted, errHandler, "the next Atomic")
}

// whenFree runs a transaction as soon as no other one has the right to the record.
func whenFree(t *testing.T, s *postgres.Store, id store.ID,
	run func(ctx context.Context, tx pgx.Tx) (*store.Change, error),
) (verdict store.Verdict, err error) {
	t.Helper()
	for busy := true; busy; {
		verdict, err = s.Atomic(t.Context(), id, true,
			func(ctx context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error) {
				if busy = found.Busy; busy {
					return nil, errHandler
				}
				return run(ctx, tx)
			})
	}
	return verdict, err
}

// Commit and Rollback are refused, and the transaction goes on.
func TestHandlerCallsCommit(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			defer func() { _ = tx.Rollback(ctx) }() // as many do by habit
			check.ErrorIs(t, tx.Commit(ctx), postgres.ErrEnded, "Commit")
			check.ErrorIs(t, tx.Rollback(ctx), postgres.ErrEnded, "Rollback")
			return &last, effect(ctx, tx, "key")
		})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	if n := effects(t, pool, "key"); n != 1 || current(t, s, last) != last.To.Token {
		t.Errorf("%d effects and %+v, want both", n, current(t, s, last))
	}
}

// Atomic returns an error that aborted the transaction, also if the handler does not
// return it. Nothing is then committed.
func TestHandlerIgnoresAnError(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx){
		"Exec":     func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, `SELECT 1 / 0`) },
		"QueryRow": func(ctx context.Context, tx pgx.Tx) { _ = tx.QueryRow(ctx, `SELECT 1 / 0`).Scan(new(int)) },
		"Query": func(ctx context.Context, tx pgx.Tx) {
			if rows, err := tx.Query(ctx, `SELECT 1 / n FROM generate_series(-2, 2) n`); err == nil {
				for rows.Next() {
					continue
				}
			}
		},
		"Query closed": func(ctx context.Context, tx pgx.Tx) {
			if rows, err := tx.Query(ctx, `SELECT 1 / n FROM generate_series(-2, 2) n`); err == nil {
				rows.Close()
			}
		},
		"Prepare":  func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Prepare(ctx, "", `SELECT no_such`) },
		"CopyFrom": copyTwice,
		"SendBatch": func(ctx context.Context, tx pgx.Tx) {
			var b pgx.Batch
			b.Queue(`SELECT 1 / 0`)
			_ = tx.SendBatch(ctx, &b).Close()
		},
		"SendBatch, Exec": func(ctx context.Context, tx pgx.Tx) {
			var b pgx.Batch
			b.Queue(`SELECT 1 / 0`)
			results := tx.SendBatch(ctx, &b)
			_, _ = results.Exec()
			_ = results.Close()
		},
		"Begin": func(ctx context.Context, tx pgx.Tx) {
			if inner, err := tx.Begin(ctx); err == nil {
				_, _ = inner.Exec(ctx, `SELECT 1 / 0`)
			}
		},
		"and goes on": func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, `SELECT 1 / 0`)
			_, _ = tx.Exec(ctx, `SELECT 1`) // says only that the transaction is aborted
		},
	} {
		last := create(name, store.Succeeded, 1)
		verdict, err := s.Atomic(t.Context(), last.To.ID, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				err := effect(ctx, tx, "key")
				fail(ctx, tx)
				return &last, err
			})
		cause, told := errtype.Find[*pgconn.PgError](err)
		if verdict != store.NotCommitted || !told || !slices.Contains([]string{"22012", "23502", "42703"}, cause.Code) {
			t.Errorf("%s: Atomic = %v, %v, want NotCommitted and the ignored error", name, verdict, err)
		}
		check.Equal(t, effects(t, pool, "key"), 0, "%s: effects", name)
		mustBeFree(t, s, last)
	}
}

func copyTwice(ctx context.Context, tx pgx.Tx) {
	_, _ = tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, pgx.CopyFromRows([][]any{{"key"}, {nil}}))
}

// An error that the handler has undone with a savepoint does not fail the transaction.
func TestHandlerRollsBackToASavepoint(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			inner, err := tx.Begin(ctx)
			if err != nil {
				return nil, err
			}
			err = effect(ctx, inner, "key")
			_, _ = inner.Exec(ctx, `SELECT 1 / 0`)
			err = errors.Join(err, inner.Rollback(ctx), pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return effect(ctx, inner, "key") }))
			return &last, err
		})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	if n := effects(t, pool, "key"); n != 1 || current(t, s, last) != last.To.Token {
		t.Errorf("%d effects and %+v, want both", n, current(t, s, last))
	}
}
