package realtest_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/realtest"
)

// openMySQL opens a pool that logs nothing and ends with the test.
func openMySQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// must runs statements, each on its own.
func must(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func scalar(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var value string
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// TestMariaDBGivesEachTestItsOwnDatabase on the shared server.
func TestMariaDBGivesEachTestItsOwnDatabase(t *testing.T) {
	t.Parallel()
	s := realtest.MariaDB(t)
	for range 2 {
		must(t, openMySQL(t, s.Database(t)), "CREATE TABLE twice (id int)")
	}
}

// TestMariaDBDropsTheDatabaseOfAnOpenTransaction: neither its connection nor its locks
// keep the database.
func TestMariaDBDropsTheDatabaseOfAnOpenTransaction(t *testing.T) {
	t.Parallel()
	s := realtest.MariaDB(t)
	user := &fakeTest{TB: t}
	db := openMySQL(t, s.Database(user))
	must(t, db, "CREATE TABLE locked (id int)")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO locked VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	user.end()
	if err := tx.Commit(); err == nil {
		t.Error("the transaction is committed")
	}
	const unknownDatabase = 1049
	var refused *mysql.MySQLError
	if err := db.PingContext(t.Context()); !errors.As(err, &refused) || refused.Number != unknownDatabase {
		t.Errorf("a new connection gets %v, want error %d", err, unknownDatabase)
	}
}

// TestKilledMariaDBKeepsWhatWasCommitted and starts again on its port, with its
// settings.
func TestKilledMariaDBKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	s := realtest.OwnMariaDB(t, "max-connections=17")
	db := openMySQL(t, s.Database(t))
	must(t, db, "CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1)")
	for how, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		end()
		if err := db.PingContext(t.Context()); err == nil {
			t.Errorf("after %s, the server still answers", how)
		}
		s.Start(t)
		if got := scalar(t, db, "SELECT count(*) FROM kept"); got != "1" {
			t.Errorf("after %s, %s rows, want 1", how, got)
		}
		for name, want := range map[string]string{"max_connections": "17", "innodb_flush_log_at_trx_commit": "1"} {
			if got := scalar(t, db, "SELECT @@"+name); got != want {
				t.Errorf("after %s, %s is %q, want %q", how, name, got, want)
			}
		}
	}
}

// TestPausedMariaDBIsSilent and goes on where it was.
func TestPausedMariaDBIsSilent(t *testing.T) {
	t.Parallel()
	s := realtest.OwnMariaDB(t)
	db := openMySQL(t, s.Database(t))
	must(t, db, "DO 1")
	mustBeSilentWhilePaused(t, s, func() error { return db.PingContext(t.Context()) })
}

// TestFailedStartOfMariaDBReportsTheLog: the error has the end of the server's log.
func TestFailedStartOfMariaDBReportsTheLog(t *testing.T) {
	t.Parallel()
	realtest.MariaDB(t) // skips where there is none
	v := &recordingTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		realtest.OwnMariaDB(v, "no-such-setting=1")
	}()
	<-done
	if !strings.Contains(v.failed, "unknown variable 'no-such-setting=1'") {
		t.Errorf("it failed with %q, want the server's own words", v.failed)
	}
}

// TestMariaDBOfAnotherProcessIsRejected: two processes may choose the same port.
func TestMariaDBOfAnotherProcessIsRejected(t *testing.T) {
	t.Parallel()
	inUse, err := realtest.StartMariaDBAt(t.Context(), realtest.OwnMariaDB(t).Addr())
	if !inUse {
		t.Errorf("got %v, want an error that says that the port is taken", err)
	}
}

// TestSharedMariaDBCannotBeKilled, because other tests use it.
func TestSharedMariaDBCannotBeKilled(t *testing.T) {
	t.Parallel()
	v := &recordingTB{TB: t}
	s := realtest.MariaDB(v)
	mustRefuse(t, v, s.Kill, s.Pause, s.Resume, s.Stop)
	must(t, openMySQL(t, s.Database(t)), "DO 1")
}
