package realtest

import (
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
func Postgres(t testing.TB) *Server {
	t.Helper()
	at := thisMachine().need(t, postgres())
	if at.url != "" {
		return &Server{t: t, url: at.url}
	}
	s := &sharedPostgres
	s.once.Do(func() { s.server, s.err = startPostgres(t.Context(), at.program, nil) })
	if s.err != nil {
		t.Fatalf("start PostgreSQL: %v", s.err)
	}
	return &Server{t: t, url: s.server.url()}
}

// OwnPostgres starts a server for this test alone, which it may kill, stop and
// pause, and which ends with it. Settings are "name=value", as for postgres -c;
// they win over those the package chooses. A server in the environment cannot
// be this test's own, so it takes a program on this machine.
func OwnPostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	m := thisMachine()
	e := postgres()
	e.env = ""
	at := m.need(t, e)
	own, err := startPostgres(t.Context(), at.program, settings)
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := own.close(); err != nil {
			t.Errorf("end PostgreSQL: %v", err)
		}
	})
	return &Server{t: t, url: own.url(), own: own}
}

// beside is another program of the same installation.
func beside(program, name string) string {
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
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
