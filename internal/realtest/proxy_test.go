package realtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// proxied is a database with an empty table "kept", behind a proxy.
func proxied(t *testing.T) (p *realtest.Proxy, direct, through string) {
	t.Helper()
	s := realtest.Postgres(t)
	direct = s.Database(t)
	execute(t, direct, "create table kept (id int primary key)")
	p = realtest.NewProxy(t, s.Addr())
	return p, direct, p.URL(direct)
}

// TestProxyPassesEverythingOn, batches, prepared statements, large results and
// copies among it.
func TestProxyPassesEverythingOn(t *testing.T) {
	t.Parallel()
	_, _, through := proxied(t)
	conn := connect(t, through)
	var b pgx.Batch
	for id := range 100 {
		b.Queue("insert into kept values ($1)", id)
	}
	check.Require(t, conn.SendBatch(t.Context(), &b).Close())
	rows := make([][]any, 0, 10_000)
	for id := range cap(rows) {
		rows = append(rows, []any{id + 100})
	}
	check.Must(conn.CopyFrom(t.Context(), pgx.Identifier{"kept"}, []string{"id"}, pgx.CopyFromRows(rows)))(t)
	for range 2 {
		found := check.Must(conn.Query(t.Context(), "select id, repeat('x', 100) from kept where id >= $1", 0))(t)
		n := 0
		for found.Next() {
			n++
		}
		if err := found.Err(); err != nil || n != 10_100 {
			t.Errorf("%d rows, %v, want 10100", n, err)
		}
	}
}

// TestReplyIsDroppedOnce: the request is done, the client does not learn of
// it, and the next to ask does.
func TestReplyIsDroppedOnce(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	conn, other := connect(t, through), connect(t, through)
	fault := p.EatReply(realtest.SQL("insert into kept"))
	if _, err := conn.Exec(t.Context(), "insert into kept values ($1)", 1); err == nil {
		t.Error("the client heard the reply")
	}
	fault.Wait(t)
	check.Equal(t, count(t, direct, "kept"), 1, "rows")
	if _, err := other.Exec(t.Context(), "insert into kept values ($1)", 2); err != nil {
		t.Errorf("a second reply: %v, want it to be passed on", err)
	}
	if fault.Disarm() {
		t.Error("the fault is armed still")
	}
}

// TestReadyIsDropped: the client gets what each of its statements has done, and not that
// the server is done with them.
func TestReadyIsDropped(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	fault := p.EatReady(realtest.SQL("insert into kept"))
	var b pgx.Batch
	heard := 0
	for id := range 3 {
		b.Queue("insert into kept values ($1)", id).Exec(func(pgconn.CommandTag) error { heard++; return nil })
	}
	if err := connect(t, through).SendBatch(t.Context(), &b).Close(); err == nil || heard != 3 {
		t.Errorf("the client heard of %d statements, want 3, and ends with %v, want an error", heard, err)
	}
	fault.Wait(t)
	check.Equal(t, count(t, direct, "kept"), 3, "rows")
}

// TestReplyToCommitIsDropped for each way to send it.
func TestReplyToCommitIsDropped(t *testing.T) {
	t.Parallel()
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		for _, batch := range []bool{false, true} {
			name := mode.String()
			if batch {
				name += " in a batch"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, direct, through := proxied(t)
				fault := p.EatReply(realtest.Commit())
				conn := connectIn(t, through, mode)
				check.Fails(t, insertAndCommit(t.Context(), conn, batch), "the client heard the reply")
				fault.Wait(t)
				check.Equal(t, count(t, direct, "kept"), 1, "rows")
			})
		}
	}
}

// insertAndCommit inserts a row in a transaction.
func insertAndCommit(ctx context.Context, conn *pgx.Conn, batch bool) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if !batch {
		if _, err := tx.Exec(ctx, "insert into kept values ($1)", 1); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	var b pgx.Batch
	b.Queue("insert into kept values ($1)", 1)
	b.Queue("commit")
	return conn.SendBatch(ctx, &b).Close()
}

func connectIn(t *testing.T, url string, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	config := check.Must(pgx.ParseConfig(url))(t)
	config.DefaultQueryExecMode = mode
	conn := check.Must(pgx.ConnectConfig(t.Context(), config))(t)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// TestCutAfterDoesNotWaitForTheReply: the client is gone while the commit still
// goes on, and it succeeds.
func TestCutAfterDoesNotWaitForTheReply(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	holder := connect(t, direct)
	hold(t, holder)
	execute(t, direct, `
		create function wait() returns trigger language plpgsql as
			$$ begin perform pg_advisory_xact_lock(1); return null; end $$;
		create constraint trigger slow after insert on kept deferrable initially deferred
			for each row execute function wait()`)
	fault := p.CutAfter(realtest.Commit())
	conn := connect(t, through)
	check.Fails(t, insertAndCommit(t.Context(), conn, false), "the client heard the reply")
	<-fault.Fired()
	<-conn.PgConn().CleanupDone() // it has asked to cancel the commit
	select {
	case <-fault.Answered():
		t.Error("the server had answered while its commit was held")
	default:
	}
	check.Equal(t, count(t, direct, "kept"), 0, "rows are there before the commit")
	check.Require(t, holder.Close(t.Context()))
	fault.Wait(t)
	check.Equal(t, count(t, direct, "kept"), 1, "rows")
}

// hold takes the advisory lock 1 until the connection ends.
func hold(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	check.Must(conn.Exec(t.Context(), "select pg_advisory_lock(1)"))(t)
}

// TestCutBeforeKeepsTheRequestFromTheServer, once.
func TestCutBeforeKeepsTheRequestFromTheServer(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	fault := p.CutBefore(realtest.Commit())
	check.Fails(t, insertAndCommit(t.Context(), connect(t, through), false), "the client heard a reply")
	fault.Wait(t)
	check.Equal(t, count(t, direct, "kept"), 0, "rows")
	check.NoError(t, insertAndCommit(t.Context(), connect(t, through), false), "again")
}

// TestPreparingIsNotExecuting: a fault for a statement waits until it runs.
func TestPreparingIsNotExecuting(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	conn := connect(t, through)
	fault := p.EatReply(realtest.SQL("insert into kept"))
	if _, err := conn.Prepare(t.Context(), "ins", "insert into kept values ($1)"); err != nil {
		t.Errorf("prepare: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ins", 1); err == nil {
		t.Error("the client heard the reply")
	}
	fault.Wait(t)
	check.Equal(t, count(t, direct, "kept"), 1, "rows")
}

// TestReset breaks open connections, and serves later ones.
func TestReset(t *testing.T) {
	t.Parallel()
	p, _, through := proxied(t)
	conn := connect(t, through)
	p.Reset()
	check.Fails(t, conn.Ping(t.Context()), "the connection still answers")
	check.NoError(t, connect(t, through).Ping(t.Context()), "a new connection")
}

// TestBlackHole holds everything back, new connections too, and lets it pass
// afterwards.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	p, direct, through := proxied(t)
	conn := connect(t, through)
	p.BlackHole(true)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if c, err := pgx.Connect(short, through); err == nil {
		t.Error("a new connection was answered")
		c.Close(t.Context())
	}
	asked := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "insert into kept values (1)")
		asked <- err
	}()
	<-short.Done()
	check.Equal(t, count(t, direct, "kept"), 0, "rows")
	p.BlackHole(false)
	check.NoError(t, <-asked, "afterwards")
	check.Equal(t, count(t, direct, "kept"), 1, "rows")
}

// TestDelay: a round trip takes at least both ways' delay.
func TestDelay(t *testing.T) {
	t.Parallel()
	p, _, through := proxied(t)
	conn := connect(t, through)
	const delay = 50 * time.Millisecond
	p.Delay(delay)
	began := time.Now()
	check.NoError(t, conn.Ping(t.Context()))
	if took := time.Since(began); took < 2*delay {
		t.Errorf("a round trip took %s, want %s at least", took, 2*delay)
	}
}
