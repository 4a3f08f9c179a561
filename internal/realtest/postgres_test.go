package realtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/realtest"
)

// TestEachTestHasADatabaseOfItsOwn on the one server.
func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	s := realtest.Postgres(t)
	for range 2 {
		exec(t, s.Database(t), "create table twice (id int)")
	}
}

// TestDatabaseEndsWithItsTest, whoever is connected.
func TestDatabaseEndsWithItsTest(t *testing.T) {
	t.Parallel()
	s := realtest.Postgres(t)
	var url string
	var conn *pgx.Conn
	t.Run("user", func(t *testing.T) {
		url = s.Database(t)
		conn = connect(t, url)
	})
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection still answers")
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the database is still there")
	}
}

// TestKilledServerKeepsWhatWasCommitted and starts again on its port.
func TestKilledServerKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	s := realtest.OwnPostgres(t)
	url := s.Database(t)
	exec(t, url, "create table kept (id int); insert into kept values (1)")
	ends := map[string]func(){
		"kill":      s.Kill,
		"fast":      func() { s.Stop(realtest.Fast) },
		"immediate": func() { s.Stop(realtest.Immediate) },
	}
	for how, end := range ends {
		conn := connect(t, url)
		end()
		if err := conn.Ping(t.Context()); err == nil {
			t.Errorf("after %s, a connection still answers", how)
		}
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Errorf("after %s, the server still answers", how)
		}
		s.Start(t)
		if got := count(t, url, "kept"); got != 1 {
			t.Errorf("after %s, %d rows stand, want 1", how, got)
		}
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, url, table string) int {
	t.Helper()
	var n int
	if err := connect(t, url).QueryRow(t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
