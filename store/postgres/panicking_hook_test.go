package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}

// A hook of the pool's configuration that panics leaves the rest of the server's reply
// unread. Its connection is not used again, because the next caller would take the rest for
// its own reply, and the transaction's admission is given back.
func TestHookPanics(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	hook := func() bool {
		if armed.Swap(false) {
			panic("a hook")
		}
		return true
	}
	for name, set := range map[string]func(c *pgxpool.Config){
		"OnPgError": func(c *pgxpool.Config) {
			c.ConnConfig.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool { return hook() }
		},
		"OnNotice": func(c *pgxpool.Config) { c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { hook() } },
	} {
		s, pool := open(t, postgres.Options{MaxSessions: 1}, atMost(2), set)
		others := connect(t, pool.Config().ConnString())
		mustExec(t, others, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF NEW.key = 'refused' THEN RAISE NOTICE 'refused'; RAISE 'refused'; END IF; RETURN NEW; END $$`)
		mustExec(t, others, `CREATE TRIGGER refuses BEFORE INSERT ON semel_records FOR EACH ROW EXECUTE FUNCTION refuse()`)
		mustExec(t, others, `CREATE FUNCTION refusal() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'refused'; RAISE 'refused'; END $$`)
		refused := create("refused", store.Succeeded, 1)
		current(t, s, refused) // finds the tables
		for what, call := range map[string]func(){
			"AtomicBatch": func() { _, _ = byBatch(oneEffect)(t, s, refused) },
			"a statement of the batch": func() {
				_, _ = byBatch(func() *pgx.Batch { return statements(`SELECT refusal()`) })(t, s, create("batch", store.Succeeded, 1))
			},
			"Atomic":              func() { _, _ = byAtomic(t, s, refused) },
			"the begin of Atomic": func() { _, _ = byAtomic(t, s, create("begin", store.Succeeded, 1)) },
			"a prepare": func() {
				_, _ = byBatch(func() *pgx.Batch { return statements(`SELECT no_such()`) })(t, s, create("batch", store.Succeeded, 1))
			},
			"Swap": func() { _, _ = s.Swap(t.Context(), []store.Change{refused}) },
			"Get":  func() { _, _ = s.Get(t.Context(), []store.ID{refused.To.ID}) },
		} {
			noTable := what == "the begin of Atomic" || what == "Get"
			if name == "OnNotice" && (noTable || what == "a prepare") {
				continue // there is no notice
			}
			check.Require(t, s.OpenSessions(t.Context()))
			if noTable {
				mustExec(t, others, `ALTER TABLE semel_records RENAME TO away`)
			}
			armed.Store(true)
			if !panics(call) {
				t.Errorf("%s, %s: the hook was not called", name, what)
			}
			if noTable {
				mustExec(t, others, `ALTER TABLE away RENAME TO semel_records`)
			}
			for i := range 6 {
				last, claim := create(fmt.Sprint(what, i), store.Succeeded, 1), create(fmt.Sprint(what, "claim", i), store.InProgress, 7)
				check.Result(finish(t, s, last.To.Key, &last))(t, store.Committed, "after %s, %s: Atomic", name, what)
				mustForce(t, s, claim)
				check.Equal(t, current(t, s, claim), claim.To.Token, "after %s, %s: the claim", name, what)
				check.Equal(t, current(t, s, last), last.To.Token, "after %s, %s: the record", name, what)
				check.Equal(t, one[string](t, pool, `SELECT $1::text`, last.To.Key), last.To.Key, "after %s, %s: a query", name, what)
			}
			realtest.Poll(t, "the connections to be given back", func() bool { return pool.Stat().AcquiredConns() == 0 })
		}
	}
}

// If a hook panics again while the rest of a reply is read, the connection is not used again.
func TestHookPanicsAgain(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	s, pool := open(t, postgres.Options{MaxSessions: -1}, atMost(2), func(c *pgxpool.Config) {
		c.ConnConfig.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {
			if armed.Load() {
				panic("a hook")
			}
		}
	})
	mustExec(t, pool, `CREATE FUNCTION notices() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
FOR i IN 1..5 LOOP RAISE NOTICE 'n'; END LOOP; RETURN 'n'; END $$`)
	armed.Store(true)
	if !panics(func() {
		_, _, _ = s.AtomicBatch(t.Context(), create("panics", store.Succeeded, 1), true, statements(`INSERT INTO effects SELECT notices()`))
	}) {
		t.Error("the hook was not called")
	}
	armed.Store(false)
	for i := range 4 {
		check.Equal(t, one[string](t, s.Pool(), `SELECT $1::text`, fmt.Sprint(i)), fmt.Sprint(i), "a query")
	}
}
