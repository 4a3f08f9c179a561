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

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A panicking callback of the pool's configuration leaves the rest of the server's
// reply unread. The connection must not be used again, because the next caller
// would read another's reply.
func TestCallbacksThatPanic(t *testing.T) {
	t.Parallel()
	const refusing = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF NEW.key = 'refused' THEN RAISE NOTICE 'refused'; RAISE 'refused'; END IF; RETURN NEW; END $$`
	for name, watch := range map[string]func(c *pgxpool.Config, armed *atomic.Bool){
		"OnPgError": func(c *pgxpool.Config, armed *atomic.Bool) {
			c.ConnConfig.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool { return !stop(armed) }
		},
		"OnNotice": func(c *pgxpool.Config, armed *atomic.Bool) {
			c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { stop(armed) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			url := database(t)
			others := connect(t, url)
			s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.MaxConns = 2; watch(c, &armed) }), postgres.Options{MaxSessions: 1})
			refused := create("refused", store.Succeeded, 1)
			asks := map[string]func() error{
				"AtomicBatch": func() error {
					_, _, err := s.AtomicBatch(t.Context(), refused, true, statements(anEffect))
					return err
				},
				"Atomic": func() error { _, err := finish(t, s, "key", &refused); return err },
				"Swap": func() error {
					_, err := s.Swap(t.Context(), []store.Change{refused})
					return err
				},
			}
			for _, ask := range asks { // prepares
				for range 3 {
					_ = ask()
				}
			}
			mustExec(t, others, refusing)
			mustExec(t, others, `CREATE TRIGGER refuses BEFORE INSERT ON semel_records FOR EACH ROW EXECUTE FUNCTION refuse()`)
			mustExec(t, others, `TRUNCATE semel_records, effects`)
			check.Require(t, s.OpenSessions(t.Context()))
			for what, ask := range asks {
				armed.Store(true)
				if !panics(func() { _ = ask() }) {
					t.Errorf("%s: the callback was not called", what)
				}
				for i := range 6 {
					last := create(fmt.Sprint(what, i), store.Succeeded, 1)
					if verdict, err := finish(t, s, last.To.Key, &last); verdict != store.Committed {
						t.Errorf("after %s: Atomic = %v, %v", what, verdict, err)
					}
					claim := create(fmt.Sprint(what, "claim", i), store.InProgress, 7)
					mustForce(t, s, claim)
					if current(t, s, claim) != claim.To.Token || current(t, s, last) != last.To.Token {
						t.Errorf("after %s the records differ from what was written", what)
					}
					check.Equal(t, one[string](t, s.Pool(), `SELECT $1::text`, last.To.Key), last.To.Key, "after %s: a query of %q answers", what, last.To.Key)
				}
			}
		})
	}
}

// stop panics once it is armed.
func stop(armed *atomic.Bool) bool {
	if armed.Swap(false) {
		panic("a callback")
	}
	return false
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}

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
	existing := create("stored", store.Succeeded, 1)
	for _, c := range []store.Change{existing, create("other", store.Succeeded, 1)} {
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
	again := existing
	again.To.Owner = 2
	answer, verdict, err := s.AtomicBatch(t.Context(), again, true, statements(anEffect))
	if verdict != store.NotCommitted || err != nil || answer.Token != existing.To.Token {
		t.Errorf("AtomicBatch of the current record = %+v, %v, %v, want NotCommitted and the current record", answer, verdict, err)
	}
	for i := range 4 {
		check.Equal(t, one[string](t, s.Pool(), `SELECT $1::text`, fmt.Sprint(i)), fmt.Sprint(i), "a query of %d answers", i)
	}
}

// If a callback panics during the begin of Atomic, its connection and its admission are released.
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
			check.Equal(t, verdict, store.Committed, "Atomic after that: %v", err)
			for s.Pool().Stat().AcquiredConns() > 0 { // one that was lost is closed beside this
				if ctx.Err() != nil {
					t.Fatal("a connection was not given back")
				}
			}
		})
	}
}

// If a callback panics while a session reads the reply to a Get, the session is closed.
func TestCallbackThatPanicsAtAGet(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	url := database(t)
	others := connect(t, url)
	s := newStore(t, connect(t, url, refusing(&armed)), postgres.Options{MaxSessions: 1})
	one := create("one", store.Pending, 1)
	mustForce(t, s, one)
	check.Require(t, s.OpenSessions(t.Context()))
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
		check.Equal(t, one[string](t, s.Pool(), `SELECT $1::text`, fmt.Sprint(i)), fmt.Sprint(i), "a query of %d answers", i)
	}
}
