package realtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// postgres is PostgreSQL, 13 or newer; the user of an address in the environment
// must be allowed to create databases.
func postgres() engine {
	return engine{
		name:     "postgres",
		env:      "SEMEL_TEST_POSTGRES_URL",
		program:  "postgres",
		places:   []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"},
		packages: "postgresql",
	}
}

// shared is the one server of the test binary, started by the first test that
// asks.
type shared struct {
	once   sync.Once
	server *instance
	err    error
}

var sharedPostgres shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// Postgres gives the test the server that all tests of this binary share. It may
// not be killed or stopped; see [OwnPostgres]. Ask it for a [Server.Database]:
// what is in its default database is everybody's.
func Postgres(tb testing.TB) *Server {
	tb.Helper()
	at := thisMachine().need(tb, postgres())
	if at.url != "" {
		return &Server{t: tb, url: at.url}
	}
	s := &sharedPostgres
	s.once.Do(func() { s.server, s.err = startPostgres(context.WithoutCancel(tb.Context()), at.program, nil) })
	if s.err != nil {
		tb.Fatalf("start PostgreSQL: %v", s.err)
	}
	return &Server{t: tb, url: s.server.url()}
}

// OwnPostgres starts a server for this test alone, which it may kill, stop and
// pause, and which ends with it. Settings are "name=value", as for postgres -c;
// they win over those the package chooses. A server in the environment cannot
// be this test's own, so it takes a program on this machine.
func OwnPostgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	m := thisMachine()
	e := postgres()
	e.env = ""
	at := m.need(tb, e)
	own, err := startPostgres(tb.Context(), at.program, settings)
	if err != nil {
		tb.Fatalf("start PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := own.close(); err != nil {
			tb.Errorf("end PostgreSQL: %v", err)
		}
	})
	return &Server{t: tb, url: own.url(), own: own}
}

// beside is another program of the same installation.
func beside(program, name string) string {
	if direct, err := filepath.EvalSymlinks(program); err == nil {
		program = direct
	}
	if path := filepath.Join(filepath.Dir(program), name); fileExists(path) {
		return path
	}
	return name
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
