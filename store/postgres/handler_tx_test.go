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

// Atomic returns an error that aborted the transaction, also if the handler does not
// return it. Nothing is then committed.
func TestHandlerIgnoresAnError(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	const fails, failsLater = `SELECT 1 / 0`, `SELECT 1 / n FROM generate_series(-2, 2) n`
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx){
		"Exec":     func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, fails) },
		"QueryRow": func(ctx context.Context, tx pgx.Tx) { _ = tx.QueryRow(ctx, fails).Scan(new(int)) },
		"Query": func(ctx context.Context, tx pgx.Tx) {
			if rows, err := tx.Query(ctx, failsLater); err == nil {
				for rows.Next() {
					continue
				}
			}
		},
		"Query closed": func(ctx context.Context, tx pgx.Tx) {
			if rows, err := tx.Query(ctx, failsLater); err == nil {
				rows.Close()
			}
		},
		"Prepare": func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Prepare(ctx, "", `SELECT no_such`) },
		"CopyFrom": func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"key"}, pgx.CopyFromRows([][]any{{"key"}, {nil}}))
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx) { _ = tx.SendBatch(ctx, statements(fails)).Close() },
		"SendBatch, Exec": func(ctx context.Context, tx pgx.Tx) {
			results := tx.SendBatch(ctx, statements(fails))
			_, _ = results.Exec()
			_ = results.Close()
		},
		"Begin": func(ctx context.Context, tx pgx.Tx) {
			if inner, err := tx.Begin(ctx); err == nil {
				_, _ = inner.Exec(ctx, fails)
			}
		},
		"and goes on": func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Exec(ctx, fails)
			_, _ = tx.Exec(ctx, `SELECT 1`) // says only that the transaction is aborted
		},
	} {
		last := create(name, store.Succeeded, 1)
		verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
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

// A handler that returns with open rows or results is rolled back, and the connection stays
// usable. Afterwards the rows and the results are refused.
func TestHandlerLeavesAResultOpen(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	const text = `INSERT INTO effects SELECT 'key' FROM generate_series(1, 9) RETURNING key`
	var rows pgx.Rows
	var results pgx.BatchResults
	for name, leave := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"rows": func(ctx context.Context, tx pgx.Tx) (err error) {
			if rows, err = tx.Query(ctx, text); err == nil && !rows.Next() {
				t.Error("no row")
			}
			return err
		},
		"results": func(ctx context.Context, tx pgx.Tx) error {
			results = tx.SendBatch(ctx, statements(text, text))
			_, err := results.Exec()
			return err
		},
	} {
		last := create(name, store.Succeeded, 1)
		verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) { return &last, leave(ctx, tx) })
		if verdict != store.NotCommitted || err == nil || errors.Is(err, postgres.ErrEnded) {
			t.Errorf("%s: Atomic = %v, %v, want NotCommitted and an error that is not ErrEnded", name, verdict, err)
		}
		check.Equal(t, effects(t, pool, "key"), 0, "%s: effects", name)
		mustForce(t, s, last)
	}
	_, exec := results.Exec()
	_, query := results.Query()
	check.Equal(t, rows.Next(), false, "rows that were left open go on")
	for i, err := range []error{rows.Err(), exec, query, results.QueryRow().Scan(new(string)), results.Close()} {
		check.ErrorIs(t, err, postgres.ErrEnded, "use %d of a result that was left open", i)
	}
}

// A second call while the first result is being read is refused, as pgx does.
func TestTwoResultsAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		rows, err := tx.Query(ctx, `SELECT generate_series(1, 3)`)
		if err != nil {
			return nil, err
		}
		check.Fails(t, effect(ctx, tx, "key"), "a statement while rows are read")
		n, err := pgx.CollectRows(rows, pgx.RowTo[int])
		check.Result(len(n), err)(t, 3, "rows")
		return &last, effect(ctx, tx, "key")
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
}

// Large objects work within the transaction.
func TestHandlerUsesLargeObjects(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		objects := tx.LargeObjects()
		oid, err := objects.Create(ctx, 0)
		if err != nil {
			return nil, err
		}
		object, err := objects.Open(ctx, oid, pgx.LargeObjectModeWrite)
		if err != nil {
			return nil, err
		}
		_, err = object.Write([]byte("large"))
		return &last, errors.Join(err, object.Close())
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	check.Equal(t, one[int](t, pool, `SELECT count(*) FROM pg_largeobject_metadata`), 1, "large objects")
}

// A handler that sets a search_path, its tenant's, does not choose where its
// record goes: whether there are tables of the same name, or none.
func TestHandlerSetsTheSearchPath(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	mustExec(t, pool, `CREATE SCHEMA tenant`)
	mustExec(t, pool, `CREATE TABLE tenant.semel_records (LIKE public.semel_records INCLUDING ALL)`)
	mustExec(t, pool, `CREATE SCHEMA other`)
	for _, schema := range []string{"tenant", "other"} {
		mustExec(t, pool, `CREATE TABLE `+schema+`.effects (key text)`)
		claimed := create(schema+" claimed", store.InProgress, 1)
		mustForce(t, s, claimed)
		beaten, finished := move(claimed, store.InProgress), move(claimed, store.Succeeded)
		made, queued := create(schema+" made", store.Succeeded, 1), create(schema+" queued", store.Pending, 1)
		kept := create(schema+" kept", store.Failed, 1)
		for _, row := range []struct {
			last *store.Change
			fail error
		}{{&made, nil}, {&beaten, nil}, {&finished, nil}, {&kept, errHandler}} {
			verdict, err := inTx(t, s, row.last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
				err := do(ctx, tx, `SET LOCAL search_path TO `+schema)
				answers, swapped := s.SwapTx(ctx, tx, []store.Change{queued})
				if swapped == nil && answers[0].Token != queued.To.Token {
					t.Errorf("SwapTx = %+v, want %+v", answers[0], queued.To.Token)
				}
				check.NoError(t, errors.Join(err, swapped, effect(ctx, tx, "key")))
				return row.last, row.fail
			})
			check.Result(verdict, err)(t, store.Committed, "%s: Atomic", schema)
			check.Equal(t, current(t, s, *row.last), row.last.To.Token, "%s: the current record", schema)
		}
		check.Equal(t, current(t, s, queued), queued.To.Token, "%s: the queued record", schema)
		check.Equal(t, one[int](t, pool, `SELECT count(*) FROM `+schema+`.effects`), 3, "%s: effects", schema)
	}
	check.Equal(t, one[int](t, pool, `SELECT count(*) FROM tenant.semel_records`), 0, "records in the tenant's table")
}

// A handler that takes a role must take one that may write the records.
func TestHandlerSetsTheRole(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, s, last.To.ID, func(ctx context.Context, tx pgx.Tx) (*store.Change, error) {
		return &last, errors.Join(effect(ctx, tx, "key"), do(ctx, tx, `SET LOCAL ROLE pg_monitor`))
	})
	if verdict != store.NotCommitted || postgres.CodeOf(err) != "42501" {
		t.Errorf("Atomic = %v, %v, want NotCommitted and that the role may not", verdict, err)
	}
	check.Equal(t, effects(t, pool, "key"), 0, "effects")
	mustBeFree(t, s, last)
}

// A handler that returns a change although its record is Busy receives ErrBusy.
func TestHandlerIgnoresBusy(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := inTx(t, s, last.To.ID, func(context.Context, pgx.Tx) (*store.Change, error) {
		verdict, err := s.Atomic(t.Context(), last.To.ID, true, func(_ context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error) {
			if !found.Busy || tx != nil {
				t.Errorf("run receives %+v and the transaction %v, want Busy and no transaction", found, tx)
			}
			return &last, nil
		})
		check.ResultIs(verdict, err)(t, store.NotCommitted, postgres.ErrBusy, "Atomic")
		return &last, nil
	})
	check.Result(verdict, err)(t, store.Committed, "the holder's Atomic")
}
