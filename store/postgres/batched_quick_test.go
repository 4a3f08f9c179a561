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
	for i := 0; send(fmt.Sprint("deallocated ", i), text) != nil; i++ {
		if i == 5 {
			t.Fatal("batches fail long after the statements were dropped")
		}
	}
	must("prepared anew", text)
	mustExec(t, others, `ALTER TABLE effects ADD other text`)
	if err := send("changed", text); err == nil {
		t.Error("a batch with an outdated statement did not fail")
	}
	must("after the change", text)
	for i := range 120 {
		must(strconv.Itoa(i), fmt.Sprintf(`INSERT INTO effects (key) VALUES ($1) /* %d */`, i))
	}
	must("at last", text)
	if n := pool.Stat().NewConnsCount(); n != 1 {
		t.Fatalf("there were %d connections, want all of it on one", n)
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
