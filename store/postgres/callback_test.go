package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

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
			if err := s.OpenSessions(t.Context()); err != nil {
				t.Fatal(err)
			}
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
					if stands(t, s, claim) != claim.To.Token || stands(t, s, last) != last.To.Token {
						t.Errorf("after %s: it stands otherwise than it was written", what)
					}
					if got := one[string](t, s.Pool(), `SELECT $1::text`, last.To.Key); got != last.To.Key {
						t.Errorf("after %s: a query of %q answers %q", what, last.To.Key, got)
					}
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
