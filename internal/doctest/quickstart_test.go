package doctest_test

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

const quickstart = "docs/quickstart.md"

// quickstartPrograms returns the two complete programs of the page, and its function serve.
func quickstartPrograms(t *testing.T) (onSQLite, onPostgres, serve string) {
	t.Helper()
	var programs []string
	for _, b := range blocks(read(t, quickstart)) {
		switch {
		case b.language == "go" && strings.Contains(b.text, "package main"):
			programs = append(programs, b.text)
		case strings.HasPrefix(b.text, "func serve("):
			serve = b.text
		}
	}
	if len(programs) != 2 || serve == "" {
		t.Fatalf("%s has %d programs, and the function %q", quickstart, len(programs), serve)
	}
	return programs[0], programs[1], serve
}

// TestQuickstartPrograms runs each program with the arguments that the page shows, and
// compares the output with the page.
func TestQuickstartPrograms(t *testing.T) {
	onSQLite, onPostgres, serve := quickstartPrograms(t)
	before, after, found := strings.Cut(read(t, quickstart), "\n## 3. ")
	if !found {
		t.Fatalf("%s has no part 3", quickstart)
	}
	t.Run("SQLite", func(t *testing.T) { runSession(t, build(t, onSQLite), before, 6) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Setenv("DATABASE_URL", durableDatabase(t))
		runSession(t, build(t, onPostgres), after, 4)
		serveOrders(t, onPostgres, serve)
	})
}

// runSession runs the lines "go run . KEY ITEM" of the page.
func runSession(t *testing.T, binary, page string, want int) {
	t.Helper()
	dir, ran := t.TempDir(), 0
	for _, b := range blocks(page) {
		if b.language != "console" {
			continue
		}
		for step := range strings.SplitSeq(b.text, "$ ") {
			command, output, _ := strings.Cut(step, "\n")
			environment, arguments, runs := strings.Cut(command, "go run . ")
			if !runs {
				continue
			}
			ran++
			cmd := exec.CommandContext(t.Context(), binary, strings.Fields(arguments)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), strings.Fields(environment)...)
			got, err := cmd.CombinedOutput()
			if err != nil {
				got = append(got, "exit status 1\n"...) // go run prints it
			}
			if string(got) != output {
				t.Errorf("%q printed %q, and %s has %q", command, got, quickstart, output)
			}
		}
	}
	check.Equal(t, ran, want, "the page: lines that run the program")
}

// serveOrders adds the page's function to the program as the page says, and sends two
// requests.
func serveOrders(t *testing.T, program, serve string) {
	t.Helper()
	const newEngine = "engine := must(semel.New(must(postgres.New(pool, postgres.Options{})), semel.Options{}))\n"
	addr := freeAddr(t)
	program = strings.NewReplacer(
		newEngine, newEngine+"\tserve(engine)\n",
		"import (\n", "import (\n\t\"net/http\"\n\t\"github.com/semelgo/semel/semelhttp\"\n",
	).Replace(program) + strings.ReplaceAll(serve, readmeAddr, addr)
	base := start(t, build(t, program), addr)
	for _, replayed := range []string{"", "true"} {
		req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/orders", strings.NewReader("item=desk")))(t)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-User", "ann")
		req.Header.Set(semelhttp.HeaderKey, "key-9")
		res := must(testClient.Do(req))
		res.Body.Close()
		if got := res.Header.Get(semelhttp.HeaderReplayed); res.StatusCode != http.StatusOK || got != replayed {
			t.Errorf("status %d, replayed %q, want 200 and %q", res.StatusCode, got, replayed)
		}
	}
}

// TestQuickstartShowsErrInProgress: the page shows the text of this error as it is.
func TestQuickstartShowsErrInProgress(t *testing.T) {
	s := openShop(t)
	call := semel.Define("order", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "book")
	attempt, _, err := adapter.Begin(t.Context(), s.engine, call)
	must(attempt, err)
	text := s.do(call, nil).Error()
	must(attempt.End("done", nil))
	if line := "\n" + text[:strings.LastIndex(text, " ")+1]; !strings.Contains(read(t, quickstart), line) {
		t.Errorf("%s does not show %q", quickstart, text)
	}
}
