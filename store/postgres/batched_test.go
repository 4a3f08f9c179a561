package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// statements is a batch without callbacks.
func statements(texts ...string) *pgx.Batch {
	b := &pgx.Batch{}
	for _, s := range texts {
		b.Queue(s)
	}
	return b
}

const anEffect = `INSERT INTO effects VALUES ('key')`

// The record and the statements are applied together, in every way in which the driver
// sends them, with callbacks and without. A repeated call applies neither.
func TestBatch(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, m := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		pool := connect(t, url, mode(m))
		s := newStore(t, pool, postgres.Options{})
		for name, b := range map[string]func() *pgx.Batch{
			"data": func() *pgx.Batch { return statements(anEffect) },
			"more": func() *pgx.Batch { return statements(`SET LOCAL application_name = 'batch'`, anEffect) },
			"callback": func() *pgx.Batch {
				b := &pgx.Batch{}
				b.Queue(anEffect + ` RETURNING key`).QueryRow(func(row pgx.Row) error {
					var key string
					return errors.Join(row.Scan(&key), same(key, "key"))
				})
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
					if verdict != want || answer.Token != c.To.Token || err != nil {
						t.Errorf("%s: AtomicBatch = %+v, %v, %v, want %v", key, answer, verdict, err, want)
					}
					check.Equal(t, effects(t, pool, "key"), i+1, "%s: effects", key)
				}
			}
			other := create(key, store.Succeeded, 2)
			answer, verdict, err := s.AtomicBatch(t.Context(), other, true, b())
			if verdict != store.NotCommitted || err != nil || answer.Token != then.To.Token || answer.Record == nil {
				t.Errorf("%s: AtomicBatch = %+v, %v, %v, want the current record", key, answer, verdict, err)
			}
		}
	}
}

func same(got, want string) error {
	if got != want {
		return errors.New("got " + got + ", want " + want)
	}
	return nil
}

// A transaction with the right to the record excludes batches of other callers at
// once.
func TestBatchOfARecordThatIsHeld(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	existing := create("stored", store.Pending, 1)
	mustForce(t, s, existing)
	for _, c := range []store.Change{create("key", store.Succeeded, 1), move(existing, store.Succeeded)} {
		_, err := s.Atomic(t.Context(), c.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) {
			answer, verdict, err := s.AtomicBatch(t.Context(), c, true, statements(anEffect))
			if !answer.Busy || verdict != store.NotCommitted || err != nil {
				t.Errorf("AtomicBatch of a held record = %+v, %v, %v, want Busy", answer, verdict, err)
			}
			return nil, nil //nolint:nilnil // nothing to change
		})
		if err != nil || effects(t, pool, "key") != 0 {
			t.Errorf("Atomic = %v with %d effects, want none", err, effects(t, pool, "key"))
		}
	}
}

// If the record is not due, the change and the statements of the batch are not applied.
func TestBatchThatIsNotDue(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	existing := create("key", store.Pending, 1)
	existing.To.Due = time.Hour
	mustForce(t, s, existing)
	c := move(existing, store.Succeeded)
	c.IfDue = true
	answer, verdict, err := s.AtomicBatch(t.Context(), c, true, statements(anEffect))
	if verdict != store.NotCommitted || err != nil || answer.Token != existing.To.Token || effects(t, pool, "key") != 0 {
		t.Errorf("AtomicBatch = %+v, %v, %v with %d effects, want the current record", answer, verdict, err, effects(t, pool, "key"))
	}
}

// A failing statement rolls the batch back, and the error is that of the statement.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{LockTimeout: -1, StatementTimeout: time.Second})
	mustExec(t, pool, `CREATE TABLE early (n int PRIMARY KEY)`)
	mustExec(t, pool, `CREATE TABLE late (n int REFERENCES early DEFERRABLE INITIALLY DEFERRED)`)
	mustExec(t, pool, `CREATE PROCEDURE commits() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'`)
	mustExec(t, pool, `CREATE FUNCTION gives_up() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '40001'; END $$`)
	failing := func(do func() error) *pgx.Batch {
		b := statements(anEffect)
		b.Queue(`UPDATE effects SET key = 'no such' WHERE false`).Exec(func(pgconn.CommandTag) error { return do() })
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
		{"deferred, begun", statements(`SET LOCAL application_name = 'x'`, anEffect, `INSERT INTO late VALUES (1)`), nil, "23503"},
		{"conflict", statements(anEffect, `SELECT gives_up()`), store.ErrConflict, "40001"},
		{"statement timeout", statements(anEffect, `SELECT pg_sleep(600)`), store.ErrInterrupted, "57014"},
		{"COMMIT", statements(anEffect, `COMMIT`), postgres.ErrEnded, ""},
		{"ROLLBACK", statements(anEffect, `ROLLBACK`), postgres.ErrEnded, ""},
		{"COMMIT hidden", statements(anEffect, `SELECT 1; COMMIT; SELECT 1`), postgres.ErrEnded, ""},
		{"by name", statements(anEffect, `prepared`), postgres.ErrEnded, ""},
		{"a procedure that commits", statements(anEffect, `CALL commits()`), nil, "2D000"},
		{"outside only", statements(anEffect, `CREATE INDEX CONCURRENTLY ON effects (key)`), nil, "25001"},
		{"callback", failing(func() error { return errHandler }), errHandler, ""},
		{"conflict in a callback", failing(func() error { return &pgconn.PgError{Code: "40001", Severity: "ERROR"} }), store.ErrConflict, ""},
	} {
		c := create("key", store.Succeeded, 1)
		answer, verdict, err := s.AtomicBatch(t.Context(), c, true, row.b)
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

// A batch that begins a transaction of its own still runs in the transaction of the store.
func TestBatchThatBegins(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	b.Queue(anEffect)
	c := create("key", store.Succeeded, 1)
	_, verdict, err := s.AtomicBatch(t.Context(), c, true, b)
	if verdict != store.Committed || err != nil || effects(t, pool, "key") != 1 || current(t, s, c) != c.To.Token {
		t.Errorf("AtomicBatch = %v, %v with %d effects, want Committed", verdict, err, effects(t, pool, "key"))
	}
}

// The server's timeouts also limit the statements of a batch.
func TestBatchSettings(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	const read = `concat_ws(' ', current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout'), current_setting('statement_timeout'))`
	for i, row := range []struct {
		o    postgres.Options
		want string
	}{
		{postgres.Options{}, "30s 10s 30s"},
		{postgres.Options{LockTimeout: time.Second}, "30s 1s 30s"},
		{postgres.Options{StatementTimeout: -1}, "30s 10s 0"},
		{postgres.Options{IdleInTransaction: -1, LockTimeout: -1, StatementTimeout: -1}, "0 0 0"},
	} {
		s := newStore(t, pool, row.o)
		var called string
		b := &pgx.Batch{}
		b.Queue(`SELECT ` + read).QueryRow(func(r pgx.Row) error { return r.Scan(&called) })
		_, first, err := s.AtomicBatch(t.Context(), create(string(rune('a'+i)), store.Succeeded, 1), true, b)
		mustExec(t, pool, `TRUNCATE effects`)
		_, second, failed := s.AtomicBatch(t.Context(), create(string(rune('k'+i)), store.Succeeded, 1), true,
			statements(`INSERT INTO effects SELECT `+read))
		if first != store.Committed || second != store.Committed {
			t.Fatalf("AtomicBatch = %v, %v and %v, %v, want Committed", first, err, second, failed)
		}
		if once := one[string](t, pool, `SELECT key FROM effects`); called != row.want || once != row.want {
			t.Errorf("a batch with %+v has the settings %s, with a callback %s; want %s", row.o, once, called, row.want)
		}
	}
}

// Prepared statements of batches may be dropped, outdated after a change of the table,
// or too many. Each time the verdict is true, and later batches are committed.
func TestBatchesPreparedAnew(t *testing.T) {
	t.Parallel()
	url := database(t)
	others, pool := connect(t, url), connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := newStore(t, pool, postgres.Options{})
	const text = `INSERT INTO effects (key) VALUES ($1) RETURNING *`
	send := func(key, text string) error {
		b := &pgx.Batch{}
		b.Queue(text, key)
		b.Queue(`SELECT 1`)
		verdict, err := func() (store.Verdict, error) {
			_, verdict, err := s.AtomicBatch(t.Context(), create(key, store.Succeeded, 1), true, b)
			return verdict, err
		}()
		if (verdict == store.Committed) != (err == nil) {
			t.Errorf("%s: AtomicBatch = %v, %v", key, verdict, err)
		}
		want := 0
		if err == nil {
			want = 1
		}
		check.Equal(t, effects(t, others, key), want, "%s: effects", key)
		return err
	}
	must := func(key, text string) {
		check.NoError(t, send(key, text), "%s", key)
	}
	must("first", text)
	must("second", text)
	mustExec(t, pool, `DEALLOCATE ALL`)
	for i := 0; send(fmt.Sprint("deallocated ", i), text) != nil; i++ {
		if i == 5 {
			t.Fatal("batches fail long after the statements were dropped")
		}
	}
	must("prepared anew", text)
	mustExec(t, others, `ALTER TABLE effects ADD other text`)
	check.Fails(t, send("changed", text), "a batch with an outdated statement did not fail")
	must("after the change", text)
	for i := range 120 {
		must(strconv.Itoa(i), fmt.Sprintf(`INSERT INTO effects (key) VALUES ($1) /* %d */`, i))
	}
	must("at last", text)
	if n := pool.Stat().NewConnsCount(); n != 1 {
		t.Fatalf("there were %d connections, want all of it on one", n)
	}
}

// A batch fails once if the type of a column has changed since its statement was prepared.
func TestBatchesOfAColumnOfAnotherType(t *testing.T) {
	t.Parallel()
	s, others := warmed(t, postgres.Options{})
	mustExec(t, others, `CREATE TABLE typed (n text)`)
	send := func(key string) error {
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO typed (n) VALUES ($1)`, "1")
		_, _, err := s.AtomicBatch(t.Context(), create(key, store.Succeeded, 1), true, b)
		return err
	}
	check.Require(t, send("before"))
	mustExec(t, others, `ALTER TABLE typed ALTER n TYPE integer USING n::integer`)
	check.Fails(t, send("changed"), "a batch whose statement has the old type of the column")
	check.NoError(t, send("after the change"))
}
