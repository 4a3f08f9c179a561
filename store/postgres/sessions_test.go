package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// A busy store opens sessions, at most as many as allowed, and closes them when it
// is idle. Callers never wait for one.
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
	const connections = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'comes and goes'`
	watch := connect(t, url)
	realtest.Poll(t, "the sessions to be closed", func() bool { // one may be about to be opened
		_, open := s.Sessions()
		return open == 0 && one[int](t, watch, connections) == 0
	})
	if idle, _ := s.Sessions(); idle != 0 {
		t.Errorf("%d sessions are idle, want none", idle)
	}
}

// A service that asks now and then has no connections but the pool's.
func TestNoSessionsForALittle(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, database(t)), postgres.Options{})
	for n := range 10 {
		mustForce(t, s, create(fmt.Sprint(n), store.InProgress, 1))
	}
	if _, open := s.Sessions(); open != 0 {
		t.Errorf("%d sessions are open", open)
	}
}

// Where a connection of the pool could be something that a session would not be,
// there are none.
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
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before != opened+1 || after != initialised+1 {
		t.Errorf("BeforeConnect was called %d times and AfterConnect %d times, want once", before-opened, after-initialised)
	}
}

// A call that is given up while it waits for a lock closes its session. The next
// call uses another one, or the pool.
func TestWhoGivesUpTakesTheSession(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{MaxSessions: 1})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := giveUpOn(t, pool, s, held(t, pool, s))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the one who gave up is told %v", err)
	}
	realtest.Poll(t, "the session to be closed", func() bool {
		idle, open := s.Sessions()
		return idle == open
	})
	mustForce(t, s, create("other", store.InProgress, 1))
}

// Sessions grow no older than the pool's connections do, however much they are used.
func TestSessionsGrowOld(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, database(t), func(c *pgxpool.Config) {
		c.MaxConnLifetime = 20 * time.Millisecond
	}), postgres.Options{MaxSessions: 1})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, open := 0, 1; open > 0; n++ {
		if _, err := s.Get(t.Context(), []store.ID{create(fmt.Sprint(n), store.InProgress, 1).To.ID}); err != nil {
			t.Fatal(err)
		}
		_, open = s.Sessions()
	}
}

// What is done by a session is seen by the pool's tracer too.
func TestSessionsAreTraced(t *testing.T) {
	t.Parallel()
	seen := &batches{}
	s := newStore(t, connect(t, database(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = seen }), postgres.Options{MaxSessions: 1})
	if err := s.OpenSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 4, 5, 40} {
		changes := batch(fmt.Sprint(n, " "), n)
		before := seen.n.Load()
		mustAll(t, s, changes)
		if _, err := s.Get(t.Context(), []store.ID{changes[0].To.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Dequeue(t.Context(), store.Dequeue{Operation: "test", Limit: 1, Owner: 1, Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if got := seen.n.Load() - before; got != 3 {
			t.Errorf("%d changes, a look and a Dequeue: the tracer has seen %d trips, want 3", n, got)
		}
		if idle, _ := s.Sessions(); idle != 1 {
			t.Errorf("%d sessions are idle, want 1", idle)
		}
	}
}

// batches counts the trips that it sees.
type batches struct{ n atomic.Int32 }

func (b *batches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	b.n.Add(1)
	return ctx
}
func (*batches) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*batches) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (*batches) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*batches) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
