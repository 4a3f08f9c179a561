//go:build !race

package archtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// TestCompiledModules compares docs/dependencies.md with the modules that a program
// compiles when it imports packages of ours, so that a program with one store compiles
// the driver of that store only. `make arch UPDATE=1` rewrites the table.
func TestCompiledModules(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "dependencies.md")
	text := check.Must(os.ReadFile(page))(t)
	const head = "| imports | modules of others |\n|---|---|\n"
	before, old, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no table", page)
	}
	old, after, _ := strings.Cut(old, "\n\n")
	rows := compiledRows(t)
	if *update {
		check.Require(t, os.WriteFile(page, []byte(before+head+rows+"\n\n"+after), 0o600))
		return
	}
	if diff := cmp.Diff(old, rows); diff != "" {
		t.Errorf("compiled modules differ from %s (-want +got); is the new module intended?\n%s", page, diff)
	}
}

// compiledRows returns the rows of the table, without the last newline.
func compiledRows(t *testing.T) string {
	t.Helper()
	var rows []string
	for _, imports := range []string{
		".", "task", "inbox", "outbox", "guard", "onetime", "semelhttp", "semelhttp/client", "semelwatermill", "semelgrpc", "semelotel", "admin adapter event journal", "console",
		"store/memory", "store/sqlite", "store/postgres", "store/mysql", "store/redis", "store/etcd",
		"migrate", "migrate/sqlite", "migrate/postgres", "migrate/mysql",
		". semelhttp store/postgres migrate/postgres", ". semelhttp store/sqlite migrate/sqlite",
		"semeltest", "semeltest/pin",
		"cmd/semel",
	} {
		args := []string{"list", "-deps", "-f", `{{with .Module}}{{.Path}}{{end}}`}
		var names []string
		for name := range strings.FieldsSeq(imports) {
			args = append(args, "./"+name)
			names = append(names, "`"+strings.Replace(name, ".", "semel", 1)+"`")
		}
		modules := strings.Fields(repository.Run(t, "go", args...))
		modules = slices.DeleteFunc(modules, ours)
		slices.Sort(modules)
		cell := strings.Join(slices.Compact(modules), "<br/>")
		if cell == "" {
			cell = "none"
		}
		rows = append(rows, "| "+strings.Join(names, ", ")+" | "+cell+" |")
	}
	return strings.Join(rows, "\n")
}
