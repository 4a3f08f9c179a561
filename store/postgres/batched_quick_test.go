package postgres_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Prepared statements of batches may be gone, outdated after a change of the table,
// or too many. Callers do not notice the first and the last; the second is reported
// once.
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
		if got := effects(t, others, key); got != want {
			t.Errorf("%s has %d effects, want %d", key, got, want)
		}
		return err
	}
	must := func(key, text string) {
		if err := send(key, text); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	must("first", text)
	must("second", text)
	mustExec(t, pool, `DEALLOCATE ALL`)
	must("deallocated", text)
	must("prepared anew", text)
	var names []string
	rows, _ := pool.Query(t.Context(), `SELECT name FROM pg_prepared_statements WHERE statement = $1 AND name LIKE 'semel%'`, text)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) != 1 {
		t.Fatalf("it is prepared as %q, %v, want one of the store's", names, err)
	}
	mustExec(t, pool, `DEALLOCATE `+names[0]) // and not what goes before it
	must("deallocated alone", text)
	must("once more", text)
	mustExec(t, others, `ALTER TABLE effects ADD other text`)
	if err := send("changed", text); err == nil {
		t.Error("the table has another column, and nobody was told")
	}
	must("after the change", text)
	for i := range 120 {
		must(strconv.Itoa(i), fmt.Sprintf(`INSERT INTO effects (key) VALUES ($1) /* %d */`, i))
	}
	must("at last", text)
	if n := pool.Stat().NewConnsCount(); n != 1 {
		t.Fatalf("there were %d connections, want all of it on one", n)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'semel%'`); n > 120 {
		t.Errorf("%d statements are prepared, want no more than a hundred", n)
	}
}

// TestForgottenStatementsAreDropped: what is forgotten is not left behind at the server.
func TestForgottenStatementsAreDropped(t *testing.T) {
	t.Parallel()
	url := database(t)
	others, pool := connect(t, url), connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2 })
	mustExec(t, others, `CREATE FUNCTION unsupported() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = 'feature_not_supported'; END $$`)
	s := newStore(t, pool, postgres.Options{})
	for i := range 50 {
		b := &pgx.Batch{}
		b.Queue(`SELECT unsupported()`)
		if _, _, err := s.AtomicBatch(t.Context(), create(fmt.Sprint(i), store.Succeeded, 1), true, b); err == nil {
			t.Fatal("it is supported")
		}
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'semel%'`); n > 10 {
		t.Errorf("%d statements of the store's are prepared on the connection after 50 batches of one text", n)
	}
}

// A column that is of another type than when a statement was prepared is told once, too.
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
	if err := send("before"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, others, `ALTER TABLE typed ALTER n TYPE integer USING n::integer`)
	if err := send("changed"); err == nil {
		t.Error("the column has another type, and nobody was told")
	}
	if err := send("after the change"); err != nil {
		t.Error(err)
	}
}
