package server_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
)

// The modes of the chat server.
const (
	inline  = "inline"
	leased  = "leased"
	records = "records" // kept in another database
)

func modes() []string { return []string{inline, leased, records} }

// files are the databases of a server under test.
type files struct {
	mode            string
	domain, records string   // files, unless
	postgres        string   // is the address of both, or
	mysql           []string // are their URLs, one for each server
	dsn             string   // of the first one
	quorum          bool     // the PostgreSQL waits for its disk and for a standby
	serveOnly       bool
}

// on returns the databases of a server in a mode. In mode records the records are in an SQLite file.
func on(t *testing.T, mode string, f files) files {
	t.Helper()
	dir := t.TempDir()
	f.mode, f.domain = mode, filepath.Join(dir, "chat.db")
	f.records = f.domain
	if mode == records {
		f.records = filepath.Join(dir, "records.db")
	}
	return f
}

func newFiles(t *testing.T, mode string) files {
	t.Helper()
	return on(t, mode, files{})
}

func newPostgres(t *testing.T, mode string) files {
	t.Helper()
	return on(t, mode, files{postgres: realtest.Postgres(t).Database(t)})
}

func newMariaDB(t *testing.T, mode string) files {
	t.Helper()
	return onMySQL(t, mode, realtest.MariaDB(t).Database(t))
}

// newGalera is newMariaDB on a cluster: each server of a test uses a node of its own.
func newGalera(t *testing.T, mode string) files {
	t.Helper()
	return onMySQL(t, mode, realtest.Galera(t).Database(t)...)
}

func onMySQL(t *testing.T, mode string, sources ...string) files {
	t.Helper()
	f := files{dsn: sources[0]}
	for _, dsn := range sources {
		c := check.Must(driver.ParseDSN(dsn))(t)
		f.mysql = append(f.mysql, "mysql://"+c.User+"@"+c.Addr+"/"+c.DBName)
	}
	return on(t, mode, f)
}

// args returns the flags of a server that uses the files.
func (f files) args(lease time.Duration) []string {
	args := []string{"-db", "sqlite:" + f.domain, "-lease", lease.String(), "-argon2", "m=64,t=1,p=1", "-sign-ups", "0", "-log-ins", "0"}
	if f.postgres != "" {
		args[1] = f.postgres
		if !f.quorum {
			args = append(args, "-may-lose") // the tests' server does not wait for the disk
		}
	}
	if len(f.mysql) > 0 {
		args[1] = f.mysql[0]
	}
	if f.serveOnly {
		args = append(args, "-serve-only")
	}
	if f.mode == records {
		return append(args, "-records", "sqlite:"+f.records)
	}
	return append(args, "-mode", f.mode)
}

// ofServer returns the databases as the server with that number uses them.
func (f files) ofServer(i int) files {
	if len(f.mysql) > 0 {
		f.mysql = []string{f.mysql[i%len(f.mysql)]}
	}
	return f
}

// openFile opens an SQLite database that servers are using.
func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := check.Must(sqlite.Open(path))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// openDomain opens the chat's own tables while servers use them.
func (f files) openDomain(t *testing.T) chatdb.Querier {
	t.Helper()
	if f.postgres != "" {
		return chatdb.Postgres(ledger.Pool(t, f.postgres))
	}
	if f.dsn != "" {
		db, _ := openMySQL(t, f.dsn)
		return db
	}
	return chatdb.SQLite(openFile(t, f.domain))
}

// creations counts how often a group was created with a key. The table has no
// unique constraint.
func creations(t *testing.T, domain chatdb.Querier, owner user, key string) int {
	t.Helper()
	return len(attempts(t, domain, owner, key))
}

// attempts lists the attempts that created a group with a key.
func attempts(t *testing.T, domain chatdb.Querier, owner user, key string) []int64 {
	t.Helper()
	return numbers(t, domain, `select attempt from creations where owner = $1 and "key" = $2 order by attempt`, owner.ID, key)
}

// numbers reads a column.
func numbers(t *testing.T, domain chatdb.Querier, statement string, args ...any) (all []int64) {
	t.Helper()
	rows := check.Must(domain.Query(t.Context(), statement, args...))(t)
	defer rows.Close()
	for rows.Next() {
		var n int64
		check.Require(t, rows.Scan(&n))
		all = append(all, n)
	}
	check.Require(t, rows.Err())
	return all
}

// recordOf reads the record of a creation.
func (f files) recordOf(t *testing.T, engine semel.Runner, u user, key string) store.Record {
	t.Helper()
	r, _, err := admin.Get(t.Context(), engine, "create_group", scopeOf(u), key)
	check.Require(t, err)
	return r
}

// engine returns an engine of its own for the records, as an operator's program has.
func (f files) engine(t *testing.T) semel.Runner {
	t.Helper()
	if f.postgres != "" && f.mode != records {
		s, err := postgres.New(ledger.Pool(t, f.postgres), postgres.Options{})
		return person(t, s, err)
	}
	if f.dsn != "" && f.mode != records {
		_, s := openMySQL(t, f.dsn)
		return person(t, s, nil)
	}
	return person(t, sqlite.New(openFile(t, f.records), sqlite.Options{}), nil)
}

func person[Tx any](t *testing.T, s store.TxStore[Tx], err error) semel.Runner {
	t.Helper()
	check.Require(t, err)
	// The server may hold the locks of a database for longer than the default limit, while
	// it recovers the log of a killed process.
	engine := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure, RecordTimeout: patience}))(t)
	return engine.Core
}

// openMySQL opens a MariaDB database that servers are using.
func openMySQL(t *testing.T, dsn string) (chatdb.DB, *mysql.Store) {
	t.Helper()
	db := check.Must(mysql.Open(dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	s := check.Must(mysql.New(db, mysql.Options{}))(t)
	return chatdb.MySQL(db), s
}

// onEachDatabase runs a test whose subject does not depend on the mode of the server.
func onEachDatabase(t *testing.T, test func(t *testing.T, f files)) {
	t.Helper()
	t.Parallel()
	for database, open := range databases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, inline))
		})
	}
}

func databases() map[string]func(t *testing.T, mode string) files {
	return map[string]func(t *testing.T, mode string) files{"sqlite": newFiles, "postgres": newPostgres, "mariadb": newMariaDB}
}

// inEachMode runs a test against a server in each mode, on each database. make test has each mode on SQLite
// and each database in the mode inline.
func inEachMode(t *testing.T, test func(t *testing.T, f files)) {
	t.Helper()
	t.Parallel()
	for database, open := range databases() {
		for _, mode := range modes() {
			t.Run(database+"/"+mode, func(t *testing.T) {
				t.Parallel()
				if database != "sqlite" && mode != inline {
					fullOnly(t)
				}
				test(t, open(t, mode))
			})
		}
	}
}
