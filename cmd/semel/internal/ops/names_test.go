package ops_test

import (
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/realtest"
)

// TestNamesOfTables: --schema and --prefix name the tables of every command.
func TestNamesOfTables(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	server := realtest.Postgres(t).Database(t)
	for _, names := range [][]string{
		{"--db", file, "--prefix", "once_"},
		{"--db", server, "--prefix", "once_", "--schema", "app"},
	} {
		at := func(args ...string) result { return run(t, append(args, names...)...) }
		for _, command := range []string{"migrate", "stats", "ls", "purge"} {
			if r := at(command); r.code != exit.OK {
				t.Errorf("semel %s %v = %+v, want code 0", command, names, r)
			}
		}
		run(t, "stats", "--db", names[1]).want(t, exit.Failed, "semel migrate")
	}
	run(t, "stats", "--db", file, "--schema", "app").want(t, exit.Usage, "--schema")
	run(t, "stats", "--db", server, "--schema", "a.b").want(t, exit.Usage, "--schema")
	run(t, "migrate", "--db", file, "--prefix", "A").want(t, exit.Usage, "--prefix")
}
