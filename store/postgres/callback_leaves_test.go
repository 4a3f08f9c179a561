package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// refusing has a pool's OnPgError panic once it is armed.
func refusing(armed *atomic.Bool) func(c *pgxpool.Config) {
	return func(c *pgxpool.Config) {
		c.MaxConns = 2
		c.ConnConfig.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool { return !stop(armed) }
	}
}

// A statement that cannot be prepared, and a callback that panics, leave a part of
// the server's reply unread. The next caller took it for its own reply.
func TestCallbackThatPanicsAtAPrepare(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	s := newStore(t, connect(t, database(t), refusing(&armed)), postgres.Options{})
	stood := create("stood", store.Succeeded, 1)
	for _, c := range []store.Change{stood, create("other", store.Succeeded, 1)} {
		if _, verdict, err := s.AtomicBatch(t.Context(), c, true, statements(anEffect)); verdict != store.Committed {
			t.Fatalf("AtomicBatch = %v, %v, want Committed", verdict, err)
		}
	}
	armed.Store(true)
	if !panics(func() {
		_, _, _ = s.AtomicBatch(t.Context(), create("fails", store.Succeeded, 1), true, statements(`INSERT INTO no_such VALUES (1)`))
	}) {
		t.Error("the callback was not called")
	}
	again := stood
	again.To.Owner = 2
	answer, verdict, err := s.AtomicBatch(t.Context(), again, true, statements(anEffect))
	if verdict != store.NotCommitted || err != nil || answer.Token != stood.To.Token {
		t.Errorf("AtomicBatch of what stands = %+v, %v, %v, want NotCommitted, and what stands", answer, verdict, err)
	}
	for i := range 4 {
		if got := one[string](t, s.Pool(), `SELECT $1::text`, fmt.Sprint(i)); got != fmt.Sprint(i) {
			t.Errorf("a query of %d answers %q", i, got)
		}
	}
}

// An Atomic whose begin a callback breaks off gives back what it has taken.
func TestCallbackThatPanicsAtTheBegin(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 3} { // by the driver, and past it
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			url := database(t)
			others := connect(t, url)
			s := newStore(t, connect(t, url, refusing(&armed)), postgres.Options{})
			mustForce(t, s, create("found", store.Pending, 1)) // the tables
			for i := range before {
				last := create(fmt.Sprint("before", i), store.Succeeded, 1)
				if verdict, err := finish(t, s, "key", &last); verdict != store.Committed {
					t.Fatalf("Atomic = %v, %v", verdict, err)
				}
			}
			mustExec(t, others, `ALTER TABLE semel_records RENAME TO away`)
			last := create("key", store.Succeeded, 1)
			armed.Store(true)
			if !panics(func() { _, _ = finish(t, s, "key", &last) }) {
				t.Fatal("the callback was not called")
			}
			mustExec(t, others, `ALTER TABLE away RENAME TO semel_records`)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			next := create("next", store.Succeeded, 1) // the server may not have noticed yet that the key is free
			verdict, err := s.Atomic(ctx, next.To.ID, true, func(context.Context, pgx.Tx, store.SwapResult) (*store.Change, error) { return &next, nil })
			if verdict != store.Committed {
				t.Errorf("Atomic after that = %v, %v, want Committed", verdict, err)
			}
			for s.Pool().Stat().AcquiredConns() > 0 { // one that was lost is closed beside this
				if ctx.Err() != nil {
					t.Fatal("a connection was not given back")
				}
			}
		})
	}
}

// A session in whose answer to a Get a callback has panicked is closed, and not only lost.
func TestCallbackThatPanicsAtAGet(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	url := database(t)
	others := connect(t, url)
	s := newStore(t, connect(t, url, refusing(&armed)), postgres.Options{MaxSessions: 1})
	one := create("one", store.Pending, 1)
	mustForce(t, s, one)
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustExec(t, others, `ALTER TABLE semel_records RENAME TO away`)
	armed.Store(true)
	if !panics(func() { _, _ = s.Get(t.Context(), []store.ID{one.To.ID}) }) {
		t.Error("the callback was not called")
	}
	mustExec(t, others, `ALTER TABLE away RENAME TO semel_records`)
	realtest.Poll(t, "the session to be closed", func() bool {
		_, open := s.Sessions()
		return open == 0
	})
}

// If a callback panics again while the rest of a reply is read, the connection is
// not used again.
func TestCallbackThatPanicsAgain(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var came atomic.Int32
	url := database(t)
	others := connect(t, url)
	s := newStore(t, connect(t, url, func(c *pgxpool.Config) {
		c.MaxConns = 2
		c.ConnConfig.OnNotice = func(c *pgconn.PgConn, _ *pgconn.Notice) {
			switch {
			case !armed.Load():
			case came.Add(1) == 1:
				until(t, others, fmt.Sprintf(`SELECT (count(*) = 0)::int FROM pg_stat_activity
WHERE pid = %d AND state = 'active'`, c.PID())) // all was said, and is read together
			default:
				panic("a callback")
			}
		}
	}), postgres.Options{MaxSessions: -1})
	mustExec(t, others, `CREATE FUNCTION notices() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
FOR i IN 1..5 LOOP RAISE NOTICE 'n'; END LOOP; RETURN 1; END $$`)
	tell := func(key string) {
		_, _, _ = s.AtomicBatch(t.Context(), create(key, store.Succeeded, 1), true, statements(`INSERT INTO effects SELECT notices()::text`))
	}
	tell("prepares")
	armed.Store(true)
	if !panics(func() { tell("panics") }) {
		t.Error("the callback was not called")
	}
	armed.Store(false)
	for i := range 4 {
		if got := one[string](t, s.Pool(), `SELECT $1::text`, fmt.Sprint(i)); got != fmt.Sprint(i) {
			t.Errorf("a query of %d answers %q", i, got)
		}
	}
}
