package realtest_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// openMySQL opens a pool that logs nothing and ends with the test.
func openMySQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	c := check.Must(mysql.ParseDSN(dsn))(t)
	c.Logger = &mysql.NopLogger{}
	connector := check.Must(mysql.NewConnector(c))(t)
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
	check.Require(t, db.QueryRowContext(t.Context(), query).Scan(&value), "%s", query)
	return value
}

// TestMariaDBDropsTheDatabaseOfAnOpenTransaction: neither its connection nor its locks
// keep the database.
func TestMariaDBDropsTheDatabaseOfAnOpenTransaction(t *testing.T) {
	t.Parallel()
	s := realtest.MariaDB(t)
	user := &fakeTest{TB: t}
	db := openMySQL(t, s.Database(user))
	must(t, db, "CREATE TABLE locked (id int)")
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	check.Must(tx.ExecContext(t.Context(), "INSERT INTO locked VALUES (1)"))(t)
	user.end()
	check.Fails(t, tx.Commit(), "the transaction is committed")
	const unknownDatabase = 1049
	var refused *mysql.MySQLError
	if err := db.PingContext(t.Context()); !errors.As(err, &refused) || refused.Number != unknownDatabase {
		t.Errorf("a new connection gets %v, want error %d", err, unknownDatabase)
	}
}

// TestKilledMariaDBKeepsWhatWasCommitted and starts again on its port, with its
// settings. Another server cannot have its port.
func TestKilledMariaDBKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	s := realtest.OwnMariaDB(t, "max-connections=17")
	db := openMySQL(t, s.Database(t))
	must(t, db, "CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1)")
	if inUse, err := realtest.StartMariaDBAt(t.Context(), s.Addr()); !inUse {
		t.Errorf("a second server at the address: %v, want an error that says that the port is taken", err)
	}
	for how, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		end()
		check.Fails(t, db.PingContext(t.Context()), "after %s, the server still answers", how)
		s.Start(t)
		check.Equal(t, scalar(t, db, "SELECT count(*) FROM kept"), "1", "after %s: rows", how)
		for name, want := range map[string]string{"max_connections": "17", "innodb_flush_log_at_trx_commit": "1"} {
			check.Equal(t, scalar(t, db, "SELECT @@"+name), want, "after %s, %s", how, name)
		}
	}
}
