//go:build unix

package command_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
)

var update = flag.Bool("update", false, "rewrite the reports of docs/conformance")

const documents = "../../../../docs/conformance"

// runConform runs conform and returns its exit code and report.
func runConform(t *testing.T, cmd *exec.Cmd) (int, *conform.Report) {
	t.Helper()
	code, out, errs := runToEnd(t, cmd)
	report := new(conform.Report)
	if err := json.Unmarshal([]byte(out), report); err != nil {
		t.Fatalf("conform ended with %d and wrote %q: %s", code, out, errs)
	}
	return code, report
}

// TestFixturePasses in each profile: every MUST and SHOULD can be tested and
// holds, and every other case holds too. The fixture runs as two processes on
// one database.
func TestFixturePasses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	for _, profile := range []string{"strict", "lenient", "stripe"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			fixture := []string{"fixture", "--addr", "127.0.0.1:0", "--profile", profile, "--db", filepath.Join(t.TempDir(), "f.db")}
			address, second := startServer(t, program(t, fixture...)), startServer(t, program(t, fixture...))
			code, report := runConform(t, program(t, "conform", "--json", "--storm", "50", "--patience", "2m", address, second))
			if code != exit.OK || report.Profile != profile {
				t.Errorf("conform ended with %d for the profile %q", code, report.Profile)
			}
			for _, r := range report.Results {
				required := r.Level == conform.Must || r.Level == conform.Should
				if required && r.Verdict != conform.Pass || r.Verdict == conform.Fail {
					t.Errorf("case %s, %s: %s: %s", r.ID, r.Level, r.Verdict, r.Detail)
				}
			}
			checkReport(t, profile+".md", fixtureTitle(profile), report)
			checkBuiltIn(t, profile, address)
		})
	}
}

func fixtureTitle(profile string) string {
	return "# The fixture in the profile " + profile + "\n\nThe report of `semel conform` on `semel fixture --profile " + profile + "`."
}

// checkBuiltIn compares the built-in profile of that name with the profile that
// the fixture publishes.
func checkBuiltIn(t *testing.T, profile, address string) {
	t.Helper()
	own := check.Must(conform.FetchProfile(t.Context(), address))(t)
	file := filepath.Join("..", "conform", "profiles", profile+".json")
	own.Suite = conform.Suite{}
	if *update {
		text := check.Must(json.MarshalIndent(own, "", "  "))(t)
		check.Require(t, os.WriteFile(file, append(text, '\n'), 0o644))
	}
	known := check.Must(conform.LoadProfile(profile, conform.Profile{}))(t)
	if diff := cmp.Diff(known, own); diff != "" {
		t.Errorf("the built-in profile is not the fixture's (-built-in +fixture):\n%s", diff)
	}
}

// TestChatServerPasses: all cases pass that can be tested on its endpoint for
// creating groups.
func TestChatServerPasses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	dir := t.TempDir()
	chat := filepath.Join(dir, "chat")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", chat, "github.com/semelgo/semel/examples/chat")
	if code, _, errs := runToEnd(t, build); code != 0 {
		t.Fatalf("build the chat server: %s", errs)
	}
	server := longRunning(t, chat, "-addr", "127.0.0.1:0", "-db", "sqlite:"+filepath.Join(dir, "chat.db"))
	address := startServer(t, server)
	cmd := program(t, "conform", "--json", "--storm", "50", "--patience", "2m", "--profile", filepath.Join(documents, "chat.json"), address)
	cmd.Env = append(os.Environ(), "TOKEN_A="+newUser(t, address, "ann"), "TOKEN_B="+newUser(t, address, "bob"))
	code, report := runConform(t, cmd)
	check.Equal(t, code, exit.OK, "conform ended with")
	for _, r := range report.Results {
		if r.Verdict != conform.Pass && r.Verdict != conform.NotShown || r.Level == conform.Must && r.Verdict != conform.Pass {
			t.Errorf("case %s, %s: %s: %s", r.ID, r.Level, r.Verdict, r.Detail)
		}
		if r.Verdict == conform.NotShown && r.Detail == "" {
			t.Errorf("case %s is not shown and has no reason", r.ID)
		}
	}
	checkReport(t, "chat.md", "# The chat server\n\nThe report of `semel conform --profile docs/conformance/chat.json` on the creation of groups\n"+
		"in the [chat server](../../examples/chat). The chat server does not implement the fixture contract.", report)
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// newUser creates a user, opens a session and returns its token.
func newUser(t *testing.T, address, name string) string {
	t.Helper()
	var made struct{ Token string }
	for _, path := range []string{"/v1/users", "/v1/sessions"} {
		body := strings.NewReader(`{"name":"` + name + `","password":"correct horse"}`)
		r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, body))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "sign up "+name)
		resp := check.Must(testClient.Do(r))(t)
		if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("POST %s answers %s: %v", path, resp.Status, err)
		}
		_ = resp.Body.Close()
	}
	return made.Token
}

// checkReport compares the published report with report. Reports contain
// nothing that differs between two runs.
func checkReport(t *testing.T, name, title string, report *conform.Report) {
	t.Helper()
	var table bytes.Buffer
	report.Markdown(&table)
	checkDocument(t, name, title, table.String())
}

// checkDocument compares a generated document with its expected content.
func checkDocument(t *testing.T, name, title, table string) {
	t.Helper()
	text := title + "\n\n<!-- Written by `go test ./cmd/semel/internal/command -update`. -->\n\n" + table
	file := filepath.Join(documents, name)
	if *update {
		check.Require(t, os.WriteFile(file, []byte(text), 0o644))
	}
	there := check.Must(os.ReadFile(file))(t)
	if diff := cmp.Diff(strings.Split(string(there), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("docs/conformance/%s is out of date (-file +want):\n%s", name, diff)
	}
}

// TestCasesAreNumberedCompletely: all numbers of the draft's list and of
// Stripe's list exist.
func TestCasesAreNumberedCompletely(t *testing.T) {
	t.Parallel()
	var want []string
	for n := 1; n <= 50; n++ {
		want = append(want, fmt.Sprint(n))
	}
	for n := 1; n <= 13; n++ {
		want = append(want, fmt.Sprintf("S%d", n))
	}
	var got []string
	for _, c := range conform.Cases("stripe") {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the cases are %q, want %q", got, want)
	}
	check.Equal(t, len(conform.Cases("strict")), 50, "cases belong to other profiles")
	var table bytes.Buffer
	conform.List(&table, conform.Cases("stripe"))
	checkDocument(t, "cases.md", "# The cases", table.String())
}

// TestConformRunsFromFlags: flags name an endpoint, without a profile file.
func TestConformRunsFromFlags(t *testing.T) {
	t.Parallel()
	made := make(chan int, 1)
	made <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // ignores keys
		n := <-made + 1
		made <- n
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%d}`, n)
	}))
	t.Cleanup(server.Close)
	code, out, _ := runToEnd(t, program(t, "conform", "--endpoint", "POST /orders", "--body", `{"item":"{{op}}","n":{{n}}}`, "--only", "1,14", server.URL))
	for _, want := range []string{"fail        1", "fail       14", "curl -i -X POST '" + server.URL + "/orders'", `{"id":`} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	check.Equal(t, code, exit.Failed, "conform ended with")
	for flags, want := range map[string]string{
		"--body x":                           "--endpoint",
		"--endpoint /x --body {{op}}":        "{{n}}",
		"--endpoint /x --body @no-such-file": "--body",
		"--endpoint /{{op}}/{{n}} --header x --other-header a:b": "header",
		"--endpoint /{{op}}/{{n}} --other-header a:b":            "--header",
	} {
		args := append(append([]string{"conform"}, strings.Fields(flags)...), server.URL)
		if code, _, errs := runToEnd(t, program(t, args...)); code != exit.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: ended with %d and %q, want %d and an error about %s", flags, code, errs, exit.Usage, want)
		}
	}
}

// TestConformInitWritesAProfile that conform accepts.
func TestConformInitWritesAProfile(t *testing.T) {
	t.Parallel()
	code, out, errs := runToEnd(t, program(t, "conform", "init", "--endpoint", "PUT /things/{{op}}"))
	if code != exit.OK {
		t.Fatalf("conform init ended with %d: %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "idempotency.json")
	check.Require(t, os.WriteFile(file, []byte(out), 0o600))
	p := check.Must(conform.LoadProfile(file, conform.UndeclaredProfile()))(t)
	if len(p.Assumed) > 0 || p.Suite.Endpoint == nil || p.Suite.Endpoint.Method != http.MethodPut {
		t.Errorf("the profile assumes %q and has the endpoint %+v", p.Assumed, p.Suite.Endpoint)
	}
}
