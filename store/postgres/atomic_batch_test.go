package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The record and the statements are applied together, in every way in which the driver
// sends them, with callbacks and without. A repeated call applies neither.
func TestBatch(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range queryModes() {
		pool := connect(t, url, mode(m))
		s := newStore(t, pool, postgres.Options{})
		for name, b := range map[string]func() *pgx.Batch{
			"data": oneEffect,
			"callback": func() *pgx.Batch {
				b := &pgx.Batch{}
				b.Queue(anEffect + ` RETURNING key`).QueryRow(func(row pgx.Row) error {
					var key string
					err := row.Scan(&key)
					check.Equal(t, key, "key", "the callback reads")
					return err
				})
				return b
			},
			"begin of its own": func() *pgx.Batch {
				b := &pgx.Batch{}
				b.BeginTx(pgx.TxOptions{})
				b.Queue(anEffect)
				return b
			},
		} {
			mustExec(t, pool, `TRUNCATE effects`)
			key := m.String() + name
			first := create(key, store.Pending, 1)
			then := move(first, store.Succeeded)
			for i, c := range []store.Change{first, then} {
				for _, want := range []store.Verdict{store.Committed, store.NotCommitted} {
					answer, verdict, err := s.AtomicBatch(t.Context(), c, true, b())
					check.Result(verdict, err)(t, want, "%s: AtomicBatch", key)
					check.Equal(t, answer.Token, c.To.Token, "%s: the current record", key)
					check.Equal(t, effects(t, pool, "key"), i+1, "%s: effects", key)
				}
			}
		}
	}
}

// A failing statement rolls the batch back, and the error is that of the statement.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{LockTimeout: -1})
	hasty := newStore(t, pool, postgres.Options{LockTimeout: -1, StatementTimeout: time.Second})
	mustExec(t, pool, `CREATE TABLE early (n int PRIMARY KEY)`)
	mustExec(t, pool, `CREATE TABLE late (n int REFERENCES early DEFERRABLE INITIALLY DEFERRED)`)
	mustExec(t, pool, `CREATE PROCEDURE commits() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'`)
	mustExec(t, pool, `CREATE FUNCTION gives_up() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '40001'; END $$`)
	failing := func(err error) *pgx.Batch {
		b := oneEffect()
		b.Queue(`UPDATE effects SET key = 'no such' WHERE false`).Exec(func(pgconn.CommandTag) error { return err })
		return b
	}
	for _, row := range []struct {
		name string
		b    *pgx.Batch
		is   error
		code string
	}{
		{"unique", statements(anEffect, `INSERT INTO early VALUES (1), (1)`), nil, "23505"},
		{"no such table", statements(anEffect, `INSERT INTO nowhere VALUES (1)`), nil, "42P01"},
		{"division", statements(anEffect, `SELECT 1 / (SELECT 0)`), nil, "22012"},
		{"deferred", statements(anEffect, `INSERT INTO late VALUES (1)`), nil, "23503"},
		{"conflict", statements(anEffect, `SELECT gives_up()`), store.ErrConflict, "40001"},
		{"statement timeout", statements(anEffect, `SELECT pg_sleep(600)`), store.ErrInterrupted, "57014"},
		{"COMMIT", statements(anEffect, `COMMIT`), postgres.ErrEnded, ""},
		{"ROLLBACK", statements(anEffect, `ROLLBACK`), postgres.ErrEnded, ""},
		{"COMMIT hidden", statements(anEffect, `SELECT 1; COMMIT; SELECT 1`), postgres.ErrEnded, ""},
		{"by name", statements(anEffect, `prepared`), postgres.ErrEnded, ""},
		{"a procedure that commits", statements(anEffect, `CALL commits()`), nil, "2D000"},
		{"outside only", statements(anEffect, `CREATE INDEX CONCURRENTLY ON effects (key)`), nil, "25001"},
		{"callback", failing(errHandler), errHandler, ""},
		{"conflict in a callback", failing(&pgconn.PgError{Code: "40001", Severity: "ERROR"}), store.ErrConflict, ""},
	} {
		c, on := create("key", store.Succeeded, 1), s
		if row.name == "statement timeout" {
			on = hasty
		}
		answer, verdict, err := on.AtomicBatch(t.Context(), c, true, row.b)
		if verdict != store.NotCommitted || err == nil || !errors.Is(err, row.is) && row.is != nil || answer.Busy || answer.Err != nil || answer.Record != nil {
			t.Errorf("%s: AtomicBatch = %+v, %v, %v, want NotCommitted and %v", row.name, answer, verdict, err, row.is)
		}
		if row.code != "" && postgres.CodeOf(err) != row.code {
			t.Errorf("%s: AtomicBatch fails with %v, want %s", row.name, err, row.code)
		}
		check.Equal(t, effects(t, pool, "key"), 0, "%s: effects", row.name)
		mustBeFree(t, s, c)
	}
}

// A statement that the driver cannot encode or the server cannot prepare fails with its own
// error in every query mode. Nothing is applied, and the error is not ErrUnavailable.
func TestBatchThatCannotBeSent(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range queryModes() {
		s := newStore(t, connect(t, url, mode(m)), postgres.Options{})
		engine := engineOver(t, s, semel.Options{})
		op := semel.Define("op", semel.OperationOptions[int]{OnError: semel.Keep})
		for name, third := range map[string]func(b *pgx.Batch) *pgx.QueuedQuery{
			"argument": func(b *pgx.Batch) *pgx.QueuedQuery {
				return b.Queue(`INSERT INTO effects VALUES ($1)`, struct{ C chan int }{})
			},
			"name": func(b *pgx.Batch) *pgx.QueuedQuery {
				return b.Queue(`INSERT INTO effects VALUES (@name)`, pgx.StrictNamedArgs{})
			},
			"table": func(b *pgx.Batch) *pgx.QueuedQuery { return b.Queue(`INSERT INTO nowhere VALUES (1)`) },
		} {
			for _, calls := range []bool{false, true} {
				b := statements(anEffect, `SELECT 1`)
				if q := third(b); calls {
					q.Exec(func(pgconn.CommandTag) error { return nil })
				}
				c := create(name, store.Succeeded, 1)
				answer, verdict, err := s.AtomicBatch(t.Context(), c, true, b)
				if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrNotStarted) || errors.Is(err, store.ErrInterrupted) || answer.Busy {
					t.Errorf("%v, %s: AtomicBatch = %+v, %v, %v, want the statement's error", m, name, answer, verdict, err)
				}
				if name == "table" && !strings.HasPrefix(err.Error(), "statement 3: ") {
					t.Errorf("%v, %s: AtomicBatch fails with %v, want its statement, 3", m, name, err)
				}
				mustBeFree(t, s, c)
				_, _, err = semel.DoBatch(t.Context(), engine, op.Call(semel.Shared(), m.String()+name, 1), func(context.Context) (int, *pgx.Batch, error) { return 1, b, nil })
				if err == nil || errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("%v, %s: DoBatch fails with %v, want the statement's error", m, name, err)
				}
			}
		}
	}
}
