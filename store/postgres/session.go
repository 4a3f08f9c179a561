package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// session is a connection that was told once how to plan and how long to wait.
type session struct {
	conn *pgx.Conn
	wire net.Conn
	used time.Time
	till time.Time // it may live, as a connection of the pool; zero: as long as it is used
	left bool      // its user gave up, which says nothing of the server
	busy bool      // with a trip, which a callback of the pool's may have broken off by a panic
	seen bool      // a tracer observes what pgx sends and receives
	// close leaves the server, without waiting for it. It may be called again.
	close func()

	goesOn     pgconn.PgErrorHandler // after an error of the server; nil: always
	statements map[string]string     // names by texts
	out        messages
}

// errNotOurs says that the server at the other end is not the one that was asked to
// make settings, which is then another one for each transaction.
var errNotOurs = errors.New("semel/postgres: there is a pooler in between")

// openSession opens one as the pool opens its own, unless the server has no room for
// as many connections beside it as the pool may open yet.
func openSession(ctx context.Context, of *pgxpool.Config, unopened func() int64) (*session, error) {
	config := of.ConnConfig.Copy()
	if of.BeforeConnect != nil {
		if err := of.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	wire := conn.PgConn().Conn()
	s := &session{
		conn: conn, wire: wire, close: leaving(context.WithoutCancel(ctx), conn, wire), statements: make(map[string]string),
		till: lifetime(of), seen: schemaSeen(config), goesOn: config.OnPgError,
	}
	if err := s.prepare(ctx, of, unopened); err != nil {
		s.close()
		return nil, fmt.Errorf("open a session: %w", err)
	}
	return s, nil
}

// schemaSeen reports whether a tracer observes the traffic of connections, and not
// only errors.
func schemaSeen(config *pgx.ConnConfig) bool {
	return config.Tracer != nil || config.OnNotice != nil || config.OnNotification != nil
}

// lifetime is until when a connection lives that is opened now.
func lifetime(of *pgxpool.Config) time.Time {
	if of.MaxConnLifetime <= 0 {
		return time.Time{}
	}
	jitter := time.Duration(rand.Float64() * float64(of.MaxConnLifetimeJitter)) //nolint:gosec // nobody gains by knowing it
	return time.Now().Add(of.MaxConnLifetime + jitter)                          //nolint:forbidigo // no instant of the protocol's
}

// isOld says that it has lived as long as it may.
func (s *session) isOld(now time.Time) bool { return !s.till.IsZero() && now.After(s.till) }

// prepare finds out whether it may be, and makes the settings: last, because what is
// not planned as they say would seem so dear that it is compiled. A pooler gives itself
// away by the process, which is not the one that the connection was told of.
func (s *session) prepare(ctx context.Context, of *pgxpool.Config, unopened func() int64) error {
	if of.AfterConnect != nil {
		if err := of.AfterConnect(ctx, s.conn); err != nil {
			return err
		}
	}
	var process uint32
	if err := s.conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&process); err != nil {
		return err
	}
	if process != s.conn.PgConn().PID() {
		return errNotOurs
	}
	if err := s.leavesRoom(ctx, unopened()); err != nil {
		return err
	}
	for _, made := range sessionSettings() {
		if _, err := s.conn.Exec(ctx, `SELECT set_config($1::text, $2::text, false)`, made.name, made.value); err != nil {
			return err
		}
	}
	return nil
}

// sessionSettings are those of trips that change or hand out many records, and what a
// trip over the pool leaves to chance: that plans are made once and never compiled, and
// that what others do meanwhile is seen.
func sessionSettings() []setting {
	return append(byKeys(), lockTimeout(busyAfter), setting{"enable_bitmapscan", "off"}, setting{"enable_sort", "off"}, setting{"jit", "off"},
		setting{"plan_cache_mode", "force_generic_plan"}, setting{"default_transaction_isolation", "read committed"})
}

// send sends b and waits for the answers, as long as ctx lasts.
func (s *session) send(ctx context.Context, b *pgx.Batch) error {
	return s.within(ctx, func(ctx context.Context) error { return s.conn.SendBatch(ctx, b).Close() })
}

// within makes a round trip within ctx. It uses the connection's own deadline,
// which is cheaper than pgx's handling of a context. A missed deadline closes the
// connection.
func (s *session) within(ctx context.Context, ask func(ctx context.Context) error) error {
	deadline, _ := ctx.Deadline()
	if err := s.wire.SetDeadline(deadline); err != nil {
		s.close()
		return fmt.Errorf("use a session: %w", err)
	}
	stop := context.AfterFunc(besides(ctx), func() { _ = s.wire.SetDeadline(time.Unix(1, 0)) })
	s.busy = true
	err := ask(context.WithoutCancel(ctx))
	s.busy = false
	s.left = err != nil && shortWait(ctx)
	if !stop() {
		s.close() // the deadline of now may be set after the next one's
	}
	if code := codeOf(err); code == codeNotSupported || code == codeNoStatement {
		s.close() // what it has prepared is of no use any more, because the tables have changed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", cmp.Or(ctx.Err(), context.DeadlineExceeded), err)
	}
	return err
}

// besides is what ends ctx besides its deadline, where that is known.
func besides(ctx context.Context) context.Context {
	if b, ok := ctx.(interface{ Besides() context.Context }); ok {
		return b.Besides()
	}
	return ctx
}

// shortWait reports whether the caller has given up, or had less time than usual.
func shortWait(ctx context.Context) bool {
	own := besides(ctx)
	if own == ctx {
		return errors.Is(ctx.Err(), context.Canceled)
	}
	at, bounded := own.Deadline()
	return own.Err() != nil || bounded && !time.Now().Before(at) //nolint:forbidigo // the asker's own
}

// usable says that the next one finds the session as this one did.
func (s *session) usable() bool {
	return !s.busy && !s.conn.IsClosed() && !s.conn.PgConn().IsBusy() && s.conn.PgConn().TxStatus() == outside
}

// leaving returns what leaves the server.
func leaving(ctx context.Context, conn *pgx.Conn, wire net.Conn) func() {
	return sync.OnceFunc(func() {
		_ = wire.SetDeadline(time.Now().Add(time.Second)) //nolint:forbidigo // no instant of the protocol's
		_ = conn.Close(ctx)
	})
}
