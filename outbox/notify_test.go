package outbox_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/outbox"
)

// Pitfall 5 is a wake-up by NOTIFY in the transactions of writers: such commits take one
// lock of the whole server, the payload has at most 8000 bytes, and the wake-up is lost
// while no connection listens.

// TestNoNotify: another transaction has the lock of PostgreSQL's notification queue for the
// whole test. Transactions that append events commit, and a relay publishes them.
func TestNoNotify(t *testing.T) {
	t.Parallel()
	// Without the standby a commit that waits for it never ends, and keeps its locks.
	server := realtest.OwnPostgres(t, "synchronous_standby_names=missing", "synchronous_commit=local")
	var sent statements
	d := onPostgresOf(t, server, func(c *pgxpool.Config) { c.ConnConfig.Tracer = &sent })
	notifyForever(t, server.Database(t))
	if n := d.holdersOfNotifyLock(); n != 1 {
		t.Fatalf("%d transactions have the lock of the notification queue, want one", n)
	}
	other := check.Must(pgx.Connect(t.Context(), server.Database(t)))(t)
	defer other.Close(context.WithoutCancel(t.Context()))
	_, err := other.Exec(t.Context(), `SET lock_timeout = '100ms'; NOTIFY events`)
	if e, ok := errtype.Find[*pgconn.PgError](err); !ok || e.Code != "55P03" {
		t.Fatalf("NOTIFY = %v, want a timeout: this test would not notice a NOTIFY", err)
	}

	e, b := newEngine(t, d.Store, semel.Options{}), newBroker(t)
	large := about("a", strings.Repeat("x", outbox.MaxPayload))
	x := d.begin()
	sent.take()
	check.Require(t, outbox.AppendTx(t.Context(), e, x.tx, large, about("b", "second"), about("c", "third")))
	if all := sent.take(); len(all) != 1 || !strings.HasPrefix(all[0], "INSERT INTO ") {
		t.Errorf("AppendTx has sent %q, want one INSERT", all)
	}
	x.commit()
	start(t, e, b, quick)
	_, _, err = semel.DoTx(t.Context(), e, place.Call(semel.ScopeOf("ann"), "1", struct{}{}), placed(e, "fourth", nil))
	check.Require(t, err)
	b.gets(string(large.Payload), "second", "third", "fourth")
	emptied(t, e)
	if n := d.holdersOfNotifyLock(); n != 1 {
		t.Errorf("%d transactions have the lock of the notification queue at the end, want the one of this test", n)
	}
}

// notifyForever takes the lock of the notification queue until the end of the test.
func notifyForever(t *testing.T, url string) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = conn.Exec(ctx, `SET synchronous_commit = on; CREATE TABLE written (); NOTIFY events`) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
		_ = conn.Close(context.WithoutCancel(ctx))
	})
	watch := check.Must(pgx.Connect(t.Context(), url))(t)
	defer watch.Close(ctx)
	realtest.Poll(t, "a commit to keep the lock of the notification queue", func() bool {
		var n int
		check.Require(t, watch.QueryRow(ctx, notifyLock).Scan(&n))
		return n == 1
	})
}

// notifyLock counts the holders of the lock that a commit with NOTIFY takes: the
// "database 0" of all databases.
const notifyLock = `SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass AND objid = 0 AND granted`

func (d *database[Tx]) holdersOfNotifyLock() (n int) {
	d.t.Helper()
	d.Scan(&n, notifyLock)
	return n
}

// statements gathers what a pool sends.
type statements struct {
	mu  sync.Mutex
	all []string
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, q.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) take() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.all = s.all, nil
	return all
}

// TestLostWakeUps: no wake-up follows a commit, because the program stopped before it, made
// it too early, or is another process. A relay finds the events when it polls.
func TestLostWakeUps(t *testing.T) {
	t.Parallel()
	onAll(t, suite{lostWakeUps[*sql.Tx], lostWakeUps[pgx.Tx]})
}

func lostWakeUps[Tx any](t *testing.T, d *database[Tx]) {
	t.Helper()
	e, other, b := newEngine(t, d.Store, semel.Options{}), newEngine(t, d.Store, semel.Options{}), newBroker(t)
	add := func(e *semel.Engine[Tx], body string, then func()) {
		x := d.begin()
		check.Require(t, outbox.AppendTx(t.Context(), e, x.tx, about("a", body)))
		then()
		x.commit()
	}
	add(e, "before the relay runs", func() {})
	start(t, e, b, quick)
	b.gets("before the relay runs")
	emptied(t, e)
	add(e, "without a wake-up", func() {})
	b.gets("without a wake-up")
	add(e, "too early", func() { outbox.Kick(e) })
	b.gets("too early")
	add(other, "of another process", func() { outbox.Kick(other) })
	b.gets("of another process")
	emptied(t, e)
}
