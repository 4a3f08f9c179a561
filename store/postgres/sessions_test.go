package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// A busy store opens sessions, at most as many as allowed, and closes them when it is idle. After
// the pool is closed, Swap and Get fail. Callers never wait for a session.
func TestSessionsComeAndGo(t *testing.T) {
	t.Parallel()
	url := database(t)
	pool := connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "comes and goes" })
	s := newStore(t, pool, postgres.Options{})
	s.SetSessionsIdle(50 * time.Millisecond)
	for n, open := 0, 0; n <= 100 || open == 0; n++ {
		mustForce(t, s, create(fmt.Sprint(n), store.InProgress, 1))
		if _, open = s.Sessions(); open > postgres.DefaultMaxSessions {
			t.Fatalf("%d sessions are open", open)
		}
	}
	pool.Close()
	for n, err := 0, error(nil); err == nil; n++ {
		_, err = s.Swap(t.Context(), []store.Change{create(fmt.Sprint("closed ", n), store.InProgress, 1)})
	}
	if _, err := s.Get(t.Context(), []store.ID{{1}}); err == nil {
		t.Error("Get works, though the pool is closed")
	}
	const connections = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'comes and goes'`
	watch := connect(t, url)
	realtest.Poll(t, "the sessions to be closed", func() bool { // one may be about to be opened
		_, open := s.Sessions()
		return open == 0 && one[int](t, watch, connections) == 0
	})
}

// A service with few calls uses no connections except the pool's.
func TestNoSessionsForALittle(t *testing.T) {
	t.Parallel()
	s, _ := open(t, postgres.Options{})
	for n := range 10 {
		mustForce(t, s, create(fmt.Sprint(n), store.InProgress, 1))
	}
	if _, open := s.Sessions(); open != 0 {
		t.Errorf("%d sessions are open", open)
	}
}

// If the hooks of the pool may change its connections, the store opens no sessions, because
// they would differ.
func TestNoSessionsWhereThePoolIsSpecial(t *testing.T) {
	t.Parallel()
	url := database(t)
	for name, change := range map[string]func(*pgxpool.Config){
		"a query mode": mode(pgx.QueryExecModeCacheDescribe),
		"PrepareConn": func(c *pgxpool.Config) {
			c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, nil }
		},
		"AfterRelease":    func(c *pgxpool.Config) { c.AfterRelease = func(*pgx.Conn) bool { return true } },
		"BeforeClose":     func(c *pgxpool.Config) { c.BeforeClose = func(*pgx.Conn) {} },
		"none are wanted": nil,
	} {
		o := postgres.Options{}
		if change == nil {
			o.MaxSessions, change = -1, func(*pgxpool.Config) {}
		}
		s := newStore(t, connect(t, url, change), o)
		for n := range 100 {
			mustForce(t, s, create(fmt.Sprint(name, n), store.InProgress, 1))
		}
		if _, open := s.Sessions(); open != 0 {
			t.Errorf("%s: %d sessions are open", name, open)
		}
	}
}

// A pooler assigns a server for each transaction, so a session would change the
// settings of another client's server.
func TestNoSessionsBehindAPooler(t *testing.T) {
	t.Parallel()
	pool := connect(t, realtest.PgBouncer(t, database(t)))
	s := newStore(t, pool, postgres.Options{})
	if err := s.OpenSessions(t.Context()); err == nil {
		t.Fatal("a session is opened")
	}
	if _, open := s.Sessions(); open != 0 {
		t.Errorf("%d sessions are open", open)
	}
}

// Sessions are opened as the pool opens its connections.
func TestSessionsAreOpenedAsThePools(t *testing.T) {
	t.Parallel()
	var before, after int
	s := newStore(t, connect(t, database(t), func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { before++; return nil }
		c.AfterConnect = func(context.Context, *pgx.Conn) error { after++; return nil }
	}), postgres.Options{MaxSessions: 1})
	opened, initialised := before, after
	check.Require(t, s.OpenSessions(t.Context()))
	if before != opened+1 || after != initialised+1 {
		t.Errorf("BeforeConnect was called %d times and AfterConnect %d times, want once", before-opened, after-initialised)
	}
}

// Sessions grow no older than the pool's connections do, however much they are used.
func TestSessionsGrowOld(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, database(t), func(c *pgxpool.Config) {
		c.MaxConnLifetime = 20 * time.Millisecond
	}), postgres.Options{MaxSessions: 1})
	check.Require(t, s.OpenSessions(t.Context()))
	for n, open := 0, 1; open > 0; n++ {
		check.Must(s.Get(t.Context(), []store.ID{create(fmt.Sprint(n), store.InProgress, 1).To.ID}))(t)
		_, open = s.Sessions()
	}
}

// The pool's tracer also sees the statements of sessions.
func TestSessionsAreTraced(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	s, _ := open(t, postgres.Options{MaxSessions: 1}, traced(tracer{batch: func() { seen.Add(1) }}))
	s.SetSessionsIdle(time.Hour) // however slow the machine is, none is closed as unused
	check.Require(t, s.OpenSessions(t.Context()))
	for _, n := range []int{1, 4, 5, 40} {
		changes := batch(fmt.Sprint(n, " "), n)
		before := seen.Load()
		mustAll(t, s, changes)
		check.Must(s.Get(t.Context(), []store.ID{changes[0].To.ID}))(t)
		check.Must(s.Dequeue(t.Context(), store.Dequeue{Operation: "test", Limit: 1, Owner: 1, Lease: time.Minute}))(t)
		check.Equal(t, seen.Load()-before, 3, "%d changes, a look and a Dequeue: the tracer has seen: trips", n)
		if idle, _ := s.Sessions(); idle != 1 {
			t.Errorf("%d sessions are idle, want 1", idle)
		}
	}
}

// An error of the server is the answer, and the session goes on. Where the pool's
// OnPgError says of an error that the connection is not to be used again, it is not.
func TestSessionsAfterAnError(t *testing.T) {
	t.Parallel()
	url := database(t)
	admin := connect(t, url)
	mustExec(t, admin, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`)
	mustExec(t, admin, `CREATE TRIGGER refuses BEFORE INSERT ON semel_records FOR EACH ROW WHEN (NEW.key = 'refused') EXECUTE FUNCTION refuse()`)
	for name, row := range map[string]struct {
		on   pgconn.PgErrorHandler
		want int
	}{
		"usual": {func(_ *pgconn.PgConn, err *pgconn.PgError) bool { return err.Severity != "FATAL" }, 1},
		"none":  {nil, 1},
		"never": {func(*pgconn.PgConn, *pgconn.PgError) bool { return false }, 0},
	} {
		s := newStore(t, connect(t, url, func(c *pgxpool.Config) { c.ConnConfig.OnPgError = row.on }), postgres.Options{MaxSessions: 1})
		s.SetSessionsIdle(time.Hour) // however slow the machine is, none is closed as unused
		check.Require(t, s.OpenSessions(t.Context()))
		changes := append(batch(name, 8), create("refused", store.InProgress, 1))
		answers, err := s.Swap(t.Context(), changes)
		// The server may not have ended the transaction of a closed connection yet.
		for row.want == 0 && err == nil && slices.ContainsFunc(answers, isBusy) {
			answers, err = s.Swap(t.Context(), changes)
		}
		if err != nil || answers[8].Err == nil || !answers[0].Applied(changes[0]) {
			t.Errorf("%s: Swap = %+v, %v, want the last one refused", name, answers, err)
		}
		if _, open := s.Sessions(); open < row.want {
			t.Errorf("%s: %d sessions are open after an error, want %d", name, open, row.want)
		}
		realtest.Poll(t, "the session to be closed", func() bool {
			_, open := s.Sessions()
			return open <= row.want
		})
	}
}

func isBusy(r store.SwapResult) bool { return r.Busy }

// If the server ends a session, the Get that meets this uses another connection.
func TestGetAfterALostSession(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{MaxSessions: 1}, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "lost" })
	others := connect(t, pool.Config().ConnString())
	c := create("key", store.Pending, 1)
	mustForce(t, s, c)
	check.Require(t, s.OpenSessions(t.Context()))
	s.SetSessionsIdle(time.Hour)
	pool.Reset() // closes the pool's own
	realtest.Poll(t, "the session to be alone", func() bool { return pool.Stat().TotalConns() == 0 })
	mustExec(t, others, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lost'`)
	check.Equal(t, current(t, s, c), c.To.Token, "the current record")
}

// A caller that gives up while it waits for a lock, or whose deadline passes, closes its
// session and no other.
func TestCallerGivesUpASession(t *testing.T) {
	t.Parallel()
	s, pool := open(t, postgres.Options{MaxSessions: 3})
	s.SetSessionsIdle(time.Hour)
	held := create("held", store.InProgress, 1)
	holder := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	check.Must(s.SwapTx(t.Context(), holder, []store.Change{held}))(t)
	for want, give := range map[error]func() context.Context{
		context.Canceled: func() context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				until(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			}()
			return ctx
		},
		context.DeadlineExceeded: func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			t.Cleanup(cancel)
			return oneAmong{ctx}
		},
	} {
		check.Require(t, s.OpenSessions(t.Context()))
		ctx, err := give(), error(nil)
		for err == nil { // it may be Busy before that
			_, err = s.Swap(ctx, []store.Change{held})
		}
		check.ErrorIs(t, err, want, "Swap of a caller that gives up")
		if idle, open := s.Sessions(); idle < 2 || open < 2 {
			t.Errorf("%v: %d sessions are open and %d idle, want the two others", want, open, idle)
		}
		realtest.Poll(t, "the session to be closed", func() bool {
			idle, open := s.Sessions()
			return idle == open
		})
		mustForce(t, s, create(want.Error(), store.InProgress, 1))
	}
}

// oneAmong is the context that the engine uses for the deadline of one caller of a batch.
type oneAmong struct{ context.Context }

func (o oneAmong) Besides() context.Context { return o.Context }

// If the server limits connections, the store opens a session only if enough connections are
// left for the pool's maximum.
func TestSessionsLeaveThePoolItsConnections(t *testing.T) {
	t.Parallel()
	url := database(t)
	admin := connect(t, url)
	name := one[string](t, admin, `SELECT current_database()::text`)
	mustExec(t, admin, `CREATE ROLE `+name+`_limited LOGIN PASSWORD 'limited' CONNECTION LIMIT 6`)
	mustExec(t, admin, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+name+`_limited`)
	for most, want := range map[int32]int{6: 0, 5: 1, 4: 2} {
		pool := connect(t, url, func(c *pgxpool.Config) {
			c.MaxConns = most
			c.ConnConfig.User, c.ConnConfig.Password = name+"_limited", "limited"
		})
		s := newStore(t, pool, postgres.Options{})
		tried := 0
		for n := 0; tried == 0 || n < 50; n++ {
			mustForce(t, s, create(fmt.Sprint(most, " ", n), store.InProgress, 1))
			if _, open := s.Sessions(); open > 0 || s.HasRefusedSession() {
				tried++
			}
		}
		realtest.Poll(t, "the session to be opened", func() bool { return !s.IsOpeningSession() })
		if idle, open := s.Sessions(); open > want || open > 0 && idle != open {
			t.Errorf("of 6 connections the pool may have %d: %d sessions are open, want %d at most", most, open, want)
		}
		s.CloseSessions()
		pool.Close()
		realtest.Poll(t, "the connections to be closed", func() bool {
			return one[int](t, admin, `SELECT count(*) FROM pg_stat_activity WHERE usename = current_database() || '_limited'`) == 0
		})
	}
	mustExec(t, admin, `DROP OWNED BY `+name+`_limited`)
	mustExec(t, admin, `DROP ROLE `+name+`_limited`)
}

// The query for free connections comes before the settings of a session. With these settings
// the planner estimates such a high cost that the server would compile the query.
func TestRoomIsAskedBeforeTheSettings(t *testing.T) {
	t.Parallel()
	var sent []string
	s, _ := open(t, postgres.Options{MaxSessions: 1}, traced(tracer{query: func(sql string) { sent = append(sent, sql) }}))
	check.Require(t, s.OpenSessions(t.Context()))
	first := func(part string) int {
		return slices.IndexFunc(sent, func(sql string) bool { return strings.Contains(sql, part) })
	}
	if room, settings := first("rolconnlimit"), first("set_config"); room < 0 || settings < 0 || room > settings {
		t.Errorf("statement %d asks for room, and %d makes settings", room, settings)
	}
}
