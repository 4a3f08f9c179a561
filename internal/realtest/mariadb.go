package realtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
)

// mariadb is MariaDB, tried with 10.11; the user of an address in the environment,
// mysql://user:password@host:port/, must be allowed to create databases and to end
// the connections of other users.
func mariadb() engine {
	return engine{
		name:     "mariadb",
		env:      "SEMEL_TEST_MARIADB_URL",
		program:  "mariadbd",
		places:   []string{"/usr/sbin", "/usr/libexec", "/opt/homebrew/opt/mariadb*/bin", "/usr/local/opt/mariadb*/bin"},
		packages: "mariadb-server",
	}
}

var sharedMariaDB shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// MariaDB gives the test the server that all tests of this binary share. The test may
// not kill or stop it; see [OwnMariaDB]. Each test asks it for a
// [MariaDBServer.Database] of its own.
func MariaDB(tb testing.TB) *MariaDBServer {
	tb.Helper()
	return &MariaDBServer{sharedMariaDB.handle(tb, mariadb(), launchMariaDB)}
}

// OwnMariaDB starts a server for this test alone, which the test may kill, stop and
// pause, and which ends with the test. Settings are "name=value", as in an option
// file; they win over those of the package. A server in the environment cannot be
// this test's own, so OwnMariaDB needs a program on this machine.
func OwnMariaDB(tb testing.TB, settings ...string) *MariaDBServer {
	tb.Helper()
	return &MariaDBServer{ownHandle(tb, mariadb(), launchMariaDB, settings)}
}

// OwnMariaDBOn is [OwnMariaDB] with a disk that the test can hold.
func OwnMariaDBOn(tb testing.TB, disk *Disk, settings ...string) *MariaDBServer {
	tb.Helper()
	on := func(program string, settings []string) launcher {
		server := newMariaDB(program, settings)
		server.env = disk.env
		return server
	}
	return &MariaDBServer{ownHandle(tb, mariadb(), on, settings)}
}

// MariaDBServer is a MariaDB that answers on its address. What ends or pauses it is
// for a server of [OwnMariaDB]; on another it fails the test.
//
// Its URL is mysql://root@host:port/, for its superuser.
type MariaDBServer struct{ handle }

// Database creates an empty database, and drops it at the end of the test, even with
// open connections and transactions. It returns the database's data source name (DSN)
// in the form of github.com/go-sql-driver/mysql, without parameters.
func (s *MariaDBServer) Database(tb testing.TB) string {
	tb.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	c := check.Must(mysqlConfig(s.url))(tb)
	if err := withMySQL(tb.Context(), c, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE DATABASE "+name)
		return err
	}); err != nil {
		tb.Fatalf("create database: %v", err)
	}
	tb.Cleanup(func() {
		if s.own != nil { // it ends with its own server
			return
		}
		drop := func(ctx context.Context, db *sql.DB) error { return dropDatabase(ctx, db, name) }
		check.NoError(tb, withMySQL(context.WithoutCancel(tb.Context()), c, drop), "drop database")
	})
	at := c.Clone()
	at.DBName = name
	return at.FormatDSN()
}

// Stop stops the server in an orderly way and returns when it has ended, within 60
// seconds. It may be called from any goroutine.
func (s *MariaDBServer) Stop() {
	s.t.Helper()
	s.do("stop", func(p *instance) error { return p.stop(syscall.SIGTERM) })
}

// dropDatabase ends the connections to a database and drops it. A connection that is
// being opened can come in between, and its transaction then keeps the tables; so
// dropDatabase repeats both. DROP DATABASE waits for the threads with which a node of
// a cluster writes the changes of the others.
func dropDatabase(ctx context.Context, db *sql.DB, name string) error {
	const lockWaitTimeout = 1205
	var err error
	kept := Retry(ctx, func() bool {
		if err = killConnections(ctx, db, name); err != nil {
			return true
		}
		_, err = db.ExecContext(ctx, "SET STATEMENT lock_wait_timeout=1 FOR DROP DATABASE IF EXISTS "+name)
		var refused *mysql.MySQLError
		return !errors.As(err, &refused) || refused.Number != lockWaitTimeout
	})
	return errors.Join(kept, err)
}

func killConnections(ctx context.Context, db *sql.DB, name string) error {
	var ids sql.NullString
	read := "SELECT group_concat(id SEPARATOR ' ') FROM information_schema.processlist WHERE db = ? AND user <> 'system user'"
	if err := db.QueryRowContext(ctx, read, name).Scan(&ids); err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	for id := range strings.FieldsSeq(ids.String) {
		// A connection may have ended meanwhile, or a node of a cluster may be executing
		// its statement together with the others.
		const noSuchThread, highPriority = 1094, 1095
		var refused *mysql.MySQLError
		_, err := db.ExecContext(ctx, "KILL "+id)
		if err != nil && (!errors.As(err, &refused) || refused.Number != noSuchThread && refused.Number != highPriority) {
			return fmt.Errorf("end connection %s: %w", id, err)
		}
	}
	return nil
}

// mysqlConfig returns the driver's configuration for a server's URL.
func mysqlConfig(server string) (*mysql.Config, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("parse %q: %w", server, err)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	return c, nil
}

// withMySQL calls fn with a pool of one connection, for at most a minute.
func withMySQL(ctx context.Context, c *mysql.Config, fn func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, ceiling)
	defer cancel()
	quiet := c.Clone()
	quiet.Logger = &mysql.NopLogger{} // a server that starts or ends breaks connections
	quiet.InterpolateParams = true
	connector, err := mysql.NewConnector(quiet)
	if err != nil {
		return fmt.Errorf("configure connection: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return errors.Join(fn(ctx, db), db.Close())
}
