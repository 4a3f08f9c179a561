package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/command"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/store/storetest"
)

func TestMain(m *testing.M) {
	// The machine's environment must not influence the tests.
	_ = os.Unsetenv("SEMEL_DB")
	_ = os.Setenv("USER", "ann")
	os.Exit(m.Run())
}

// result is the output of the program.
type result struct {
	args []string
	code int
	out  string
	errs string
}

// runWith runs the program in this process, with stdin.
func runWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := command.Main(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{args, code, out.String(), errs.String()}
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t, "", args...)
}

// must runs the program, which must succeed, and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	got := run(t, args...)
	if got.code != exit.OK || got.errs != "" {
		t.Fatalf("semel %v: code %d, printed %q", args, got.code, got.errs)
	}
	return got.out
}

// want checks the exit code, and that standard error is one line that contains
// text.
func (got result) want(t *testing.T, code int, text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(got.errs, "\n"), "\n")
	if code == exit.Usage && len(lines) == 2 {
		lines = lines[:1] // the second line points to the help
	}
	if got.code != code || len(lines) != 1 || !strings.HasPrefix(lines[0], "semel: ") || !strings.Contains(lines[0], text) {
		t.Errorf("semel %v: code %d, wrote %q; want code %d and one line with %q", got.args, got.code, got.errs, code, text)
	}
}

// testDB is a database and a program that uses it.
type testDB struct {
	db     string // the value of --db
	engine semel.Runner
	store  store.Store
	// broken makes an engine over a store with faults.
	broken func(t *testing.T, decide func(storetest.Call) storetest.Fault, o semel.Options) semel.Runner
	// withOperations makes an engine with operations, as workers have.
	withOperations func(t *testing.T, ops ...semel.Declared) semel.Runner
}

// newSQLite creates a SQLite database and an engine over it.
func newSQLite(t *testing.T) *testDB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "semel.db")
	s := &testDB{db: "sqlite:" + path}
	must(t, "migrate", "--db", s.db)
	db := check.Must(sqlite.Open(path))(t)
	t.Cleanup(func() { db.Close() })
	records := sqlite.New(db, sqlite.Options{})
	fill(t, s, records)
	return s
}

// newPostgres creates a PostgreSQL database and an engine over it.
func newPostgres(t *testing.T) *testDB {
	t.Helper()
	s := &testDB{db: realtest.Postgres(t).Database(t)}
	must(t, "migrate", "--db", s.db)
	records := check.Must(postgres.New(ledger.Pool(t, s.db), postgres.Options{}))(t)
	fill(t, s, records)
	return s
}

// newMariaDB creates a MariaDB database and an engine over it.
func newMariaDB(t *testing.T) *testDB {
	t.Helper()
	dsn := realtest.MariaDB(t).Database(t)
	s := &testDB{db: urlOf(t, dsn)}
	must(t, "migrate", "--db", s.db)
	db := check.Must(mysql.Open(dsn))(t)
	t.Cleanup(func() { db.Close() })
	records := check.Must(mysql.New(db, mysql.Options{}))(t)
	fill(t, s, records)
	return s
}

// urlOf returns the value of --db for a data source name of the driver.
func urlOf(t *testing.T, dsn string) string {
	t.Helper()
	config := check.Must(driver.ParseDSN(dsn))(t)
	return fmt.Sprintf("mysql://%s@%s/%s", config.User, config.Addr, config.DBName)
}

// everyDatabase runs test on each kind of database.
func everyDatabase(t *testing.T, test func(t *testing.T, s *testDB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, newSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, newPostgres(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, newMariaDB(t)) })
}

// fill makes the engines of s.
func fill[Tx any](t *testing.T, s *testDB, records store.TxStore[Tx]) {
	t.Helper()
	s.store = records
	s.engine = engineOver(t, records, semel.Options{})
	s.broken = func(t *testing.T, decide func(storetest.Call) storetest.Fault, o semel.Options) semel.Runner {
		t.Helper()
		return engineOver(t, storetest.NewFaultyTx(records, decide), o)
	}
	s.withOperations = func(t *testing.T, ops ...semel.Declared) semel.Runner {
		t.Helper()
		return engineOver(t, records, semel.Options{Operations: ops})
	}
}

func engineOver[Tx any](t *testing.T, s store.TxStore[Tx], o semel.Options) semel.Runner {
	t.Helper()
	o.Survive = store.NoFailure
	if o.RecordTimeout == 0 {
		o.RecordTimeout = time.Minute // a slow machine does not end the calls of the tests
	}
	e := check.Must(semel.New(s, o))(t)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // some tests leave unrecorded outcomes
		_ = e.Close(ended)
	})
	return e.Core
}

// runOn runs the program on the database.
func (s *testDB) runOn(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, append(args, "--db", s.db)...)
}

// must runs the program on the database. It must succeed.
func (s *testDB) must(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append(args, "--db", s.db)...)
}

var (
	errDown = errors.New("the bank is down")

	charge  = semel.Define("charge", semel.OperationOptions[string]{})
	payout  = semel.Define("payout", semel.OperationOptions[string]{})
	nothing = func(context.Context) (string, error) { return "", errors.New("it ran") }
)

// someScope is a scope whose parts must not be printed.
func someScope() semel.Scope { return semel.ScopeOf("tenant-s3cret", "user-s3cret") }

// callOf returns a call with a key that must not be printed.
func callOf(key string) semel.Call { return charge.Call(someScope(), key+"-s3cret", "input-s3cret") }

// do runs c with a function that returns v and err.
func (s *testDB) do(t *testing.T, c semel.Call, v string, err error) (string, bool, error) {
	t.Helper()
	return semel.Do(t.Context(), s.engine, c, func(context.Context) (string, error) { return v, err })
}

// makeInDoubt makes c InDoubt: its function returns an Unknown error.
func (s *testDB) makeInDoubt(t *testing.T, c semel.Call) string {
	t.Helper()
	if _, _, err := s.do(t, c, "", errDown); !errors.Is(err, semel.ErrOutcomeUnknown) {
		t.Fatalf("Do = %v, want ErrOutcomeUnknown", err)
	}
	return c.ID().String()
}

// state returns the current state of c.
func (s *testDB) state(t *testing.T, c semel.Call) store.State {
	t.Helper()
	return s.stateOf(t, c.ID())
}

// stateOf returns the state of a record.
func (s *testDB) stateOf(t *testing.T, id store.ID) store.State {
	t.Helper()
	return check.Must(s.store.Get(t.Context(), []store.ID{id}))(t)[0].Token.State
}

// writeFile writes a file in the test's directory.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	check.Require(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
