package realtest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestDatabaseEndsWithItsTest: open connections do not keep the database.
func TestDatabaseEndsWithItsTest(t *testing.T) {
	t.Parallel()
	s := realtest.Postgres(t)
	user := &fakeTest{TB: t}
	url := s.Database(user)
	conn := connect(t, url)
	user.end()
	check.Fails(t, conn.Ping(t.Context()), "the connection still answers")
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the database is still there")
	}
}

// fakeTest is a test that ends before the real test.
type fakeTest struct {
	testing.TB

	cleanups []func()
}

func (e *fakeTest) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }

func (e *fakeTest) end() {
	for _, f := range slices.Backward(e.cleanups) {
		f()
	}
}

// TestKilledServerKeepsWhatWasCommitted and starts again on its port, with its
// settings. While it is paused it does not answer, and another server cannot have its port.
func TestKilledServerKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	s := realtest.OwnPostgres(t, "max_connections=7", "shared_buffers=16MB")
	url := s.Database(t)
	execute(t, url, "create table kept (id int); insert into kept values (1)")
	paused := connect(t, url)
	mustBeSilentWhilePaused(t, s, func() error { return paused.Ping(t.Context()) })
	if inUse, err := realtest.StartPostgresAt(t.Context(), s.Addr()); !inUse {
		t.Errorf("a second server at the address: %v, want an error that says that the port is taken", err)
	}
	ends := map[string]func(){
		"kill":      s.Kill,
		"fast":      func() { s.Stop(realtest.Fast) },
		"immediate": func() { s.Stop(realtest.Immediate) },
	}
	for how, end := range ends {
		conn := connect(t, url)
		end()
		check.Fails(t, conn.Ping(t.Context()), "after %s, a connection still answers", how)
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Errorf("after %s, the server still answers", how)
		}
		s.Start(t)
		check.Equal(t, count(t, url, "kept"), 1, "after %s: rows", how)
		for name, want := range map[string]string{
			"max_connections": "7", "shared_buffers": "16MB", "synchronous_commit": "on",
		} {
			check.Equal(t, show(t, url, name), want, "after %s, %s", how, name)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func show(t *testing.T, url, setting string) string {
	t.Helper()
	var value string
	check.Require(t, connect(t, url).QueryRow(t.Context(), "show "+setting).Scan(&value))
	return value
}

func count(t *testing.T, url, table string) int {
	t.Helper()
	var n int
	check.Require(t, connect(t, url).QueryRow(t.Context(), "select count(*) from "+table).Scan(&n))
	return n
}

// mustBeSilentWhilePaused requires that a server answers a question after its pause.
func mustBeSilentWhilePaused(t *testing.T, s interface {
	Pause()
	Resume()
}, ask func() error,
) {
	t.Helper()
	s.Pause()
	answered := make(chan error, 1)
	go func() { answered <- ask() }()
	select {
	case err := <-answered:
		t.Errorf("the paused server answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume()
	check.NoError(t, <-answered, "after the pause")
}

// TestFailedStartReportsTheLog: the error has the end of the server's log.
func TestFailedStartReportsTheLog(t *testing.T) {
	t.Parallel()
	realtest.Postgres(t) // skips where there is none
	v := &recordingTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		realtest.OwnPostgres(v, "max_connections=many")
	}()
	<-done
	if !strings.Contains(v.failed, `invalid value for parameter "max_connections"`) {
		t.Errorf("it failed with %q, want the server's own words", v.failed)
	}
}

// TestSharedServerCannotBeKilled, because other tests use it.
func TestSharedServerCannotBeKilled(t *testing.T) {
	t.Parallel()
	v := &recordingTB{TB: t}
	s := realtest.Postgres(v)
	mustRefuse(t, v, s.Kill, s.Pause, s.Resume, func() { s.Stop(realtest.Fast) })
	check.NoError(t, connect(t, s.URL()).Ping(t.Context()))
}

// mustRefuse requires that each act fails the test of a shared server.
func mustRefuse(t *testing.T, v *recordingTB, acts ...func()) {
	t.Helper()
	for i, act := range acts {
		v.erred = ""
		act()
		if v.erred == "" {
			t.Errorf("act %d is allowed", i)
		}
	}
}

// TestPgBouncerSharesConnectionsByTransaction: two clients that are between
// transactions are served by one connection to the server.
func TestPgBouncerSharesConnectionsByTransaction(t *testing.T) {
	t.Parallel()
	s := realtest.Postgres(t)
	through := realtest.PgBouncer(t, s.Database(t))
	pids := make(map[int]bool)
	for range 5 {
		conn := connectIn(t, through, pgx.QueryExecModeExec)
		var pid int
		check.Require(t, conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
		pids[pid] = true
	}
	check.Equal(t, len(pids), 1, "five clients were served by: connections")
}
