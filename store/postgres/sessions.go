package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessions is a second pool with connections for the store's own statements. Settings
// for planning and lock waits are made once for each connection. On the application's
// pool each round trip has to make them, which costs as much as recording one change.
//
// The second pool exists only while there is enough work. Its connections are opened
// in the background, and callers meanwhile use the application's pool.
type sessions struct {
	config *pgxpool.Config // nil: there is no second pool
	main   *pgxpool.Pool
	// idleFor is the time without use after which the second pool is closed.
	idleFor time.Duration

	mu      sync.Mutex
	pool    *pgxpool.Pool // nil until there is enough work
	opening bool          // a connection is being opened
	used    bool          // since the last sweep
	wanted  int           // calls without a free connection since the time since
	since   time.Time
	shut    time.Time // no connection is opened before, because the last one failed
}

const (
	// A connection is opened after wantedCalls calls without one within wantedWithin.
	wantedCalls  = 16
	wantedWithin = time.Second

	sessionsIdle = time.Second
	// openWithin limits the time to open a connection. After a failure none is opened
	// for shutFor.
	openWithin = 10 * time.Second
	shutFor    = 30 * time.Second
)

// newSessions returns the sessions of a store. There are none if the pool's hooks see
// each use of a connection, or if pgx must not prepare statements.
func newSessions(main *pgxpool.Pool, config *pgxpool.Config, most int) *sessions {
	hooked := config.PrepareConn != nil || config.AfterRelease != nil || config.BeforeClose != nil ||
		config.BeforeAcquire != nil //nolint:staticcheck // an application may still set it
	p := &sessions{main: main, idleFor: sessionsIdle}
	if hooked || most < 0 || config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return p
	}
	initialise := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if initialise != nil {
			if err := initialise(ctx, conn); err != nil {
				return err
			}
		}
		return p.prepare(ctx, conn)
	}
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(most), 0, 0
	p.config = config
	return p
}

// prepare checks that the connection may be used, and makes the settings. They come
// last, because with them the server would compile the checks. A pooler shows by the
// number of the server's process, which is not the one that pgx was given.
func (p *sessions) prepare(ctx context.Context, conn *pgx.Conn) error {
	var process uint32
	var room int64
	if err := conn.QueryRow(ctx, sqlRoom).Scan(&process, &room); err != nil {
		return fmt.Errorf("find room for a connection: %w", err)
	}
	if process != conn.PgConn().PID() {
		return errors.New("semel/postgres: a pooler assigns the server's sessions")
	}
	if stat := p.main.Stat(); room < int64(stat.MaxConns()-stat.TotalConns()) {
		return errors.New("semel/postgres: the server has no room for another connection")
	}
	_, err := conn.Exec(ctx, `SELECT `+setSession(sessionSettings()))
	return err
}

// sqlRoom is the number of the server's process, and that of further connections that
// the server allows this role in this database.
const sqlRoom = `SELECT pg_backend_pid(), least(
CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usesysid = r.oid) END,
CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit - (SELECT numbackends FROM pg_stat_database WHERE datid = d.oid) END,
current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
- coalesce(current_setting('reserved_connections', true)::bigint, 0) - (SELECT sum(numbackends) FROM pg_stat_database)::bigint)::bigint
FROM pg_roles r CROSS JOIN pg_database d WHERE r.rolname = session_user AND d.datname = current_database()`

// sessionSettings are the settings for all statements of the store. Plans are made
// once and never compiled, and a statement sees what other transactions commit.
func sessionSettings() []setting {
	return append(keyed(busyAfter), setting{"plan_cache_mode", "force_generic_plan"}, setting{"default_transaction_isolation", "read committed"})
}

// take returns a free connection, or none.
func (p *sessions) take(ctx context.Context) lease {
	pool := p.free(ctx)
	if pool == nil {
		return lease{}
	}
	ctx, cancel := context.WithTimeout(ctx, busyAfter) // another call may have taken it
	defer cancel()
	own, _ := leaseOf(pool.Acquire(ctx)) // without one, the caller uses the application's pool
	return own
}

// free returns the second pool if it has a free connection. Otherwise it opens one in
// the background if there is enough work.
func (p *sessions) free(ctx context.Context) *pgxpool.Pool {
	if p.config == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = true
	if p.pool != nil && p.pool.Stat().IdleConns() > 0 {
		return p.pool
	}
	if p.isWorthIt() && p.open(ctx) == nil {
		p.opening = true
		go p.add(context.WithoutCancel(ctx), p.pool)
	}
	return nil
}

// isWorthIt reports whether to open one more connection.
func (p *sessions) isWorthIt() bool {
	now := time.Now() //nolint:forbidigo // no instant of the protocol's
	if p.opening || now.Before(p.shut) || p.pool != nil && p.pool.Stat().TotalConns() >= p.config.MaxConns {
		return false
	}
	if now.Sub(p.since) > wantedWithin {
		p.wanted, p.since = 0, now
	}
	if p.wanted++; p.wanted < wantedCalls {
		return false
	}
	p.wanted = 0
	return true
}

// open makes the second pool, which has no connections yet.
func (p *sessions) open(ctx context.Context) error {
	if p.pool != nil {
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), p.config.Copy())
	if err != nil {
		return fmt.Errorf("open a pool: %w", err)
	}
	p.pool = pool
	time.AfterFunc(p.idleFor, p.sweep)
	return nil
}

// add opens a connection for later calls.
func (p *sessions) add(ctx context.Context, pool *pgxpool.Pool) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	err := p.check(ctx)
	if err == nil {
		err = pool.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening = false
	if err != nil {
		p.shut = time.Now().Add(shutFor) //nolint:forbidigo // no instant of the protocol's
	}
}

// sweep closes the second pool if it was not used since the last sweep, or if the
// application's pool is closed.
func (p *sessions) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	closed := p.check(ctx) != nil
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.pool == nil:
		return
	case (p.used || p.opening) && !closed:
		p.used = false
		time.AfterFunc(p.idleFor, p.sweep)
		return
	}
	go p.pool.Close() // which waits for the calls that use its connections
	p.pool = nil
}

// check fails if the application's pool is closed. A pool with connections is open.
func (p *sessions) check(ctx context.Context) error {
	if p.main.Stat().TotalConns() > 0 {
		return nil
	}
	return p.main.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil })
}
