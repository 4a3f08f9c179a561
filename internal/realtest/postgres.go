package realtest

import "testing"

// postgres is PostgreSQL, 13 or newer; the user of an address in the environment
// must be allowed to create databases.
func postgres() engine {
	return engine{
		name:     "postgres",
		env:      "SEMEL_TEST_POSTGRES_URL",
		envDir:   "SEMEL_TEST_POSTGRES_BIN",
		program:  "postgres",
		places:   []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"},
		packages: "postgresql",
	}
}

var sharedPostgres shared //nolint:gochecknoglobals // one server for all tests of a binary is its purpose

// Postgres gives the test the server that all tests of this binary share. It may
// not be killed or stopped; see [OwnPostgres]. Ask it for a [Server.Database]:
// what is in its default database is everybody's.
func Postgres(tb testing.TB) *Server {
	tb.Helper()
	return &Server{sharedPostgres.handle(tb, postgres(), newCluster)}
}

// OwnPostgres starts a server for this test alone, which it may kill, stop and
// pause, and which ends with it. Settings are "name=value", as for postgres -c;
// they win over those the package chooses. A server in the environment cannot
// be this test's own, so it takes a program on this machine.
func OwnPostgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return &Server{ownHandle(tb, postgres(), newCluster, settings)}
}
