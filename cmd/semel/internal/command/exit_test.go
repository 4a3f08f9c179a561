package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/cmd/semel/internal/exit"
	"github.com/semelgo/semel/internal/check"
)

// newServerWithoutKeys starts a server that runs every request, ignores keys,
// and counts effects. It returns a profile file with the server's endpoint.
func newServerWithoutKeys(t *testing.T) (address, profile string) {
	t.Helper()
	var mu sync.Mutex // guards made
	made := make(map[string]int)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var order struct{ Item string }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		made[order.Item]++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"order":%d}`, made[order.Item])
	})
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, `{"stats":{"orders":%d}}`, made[r.FormValue("item")])
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, writeFile(t, `{"suite":{"endpoint":{
		"url":"/orders","body":"{\"item\":\"{{op}}\",\"n\":{{n}}}","counter":{"url":"/orders?item={{op}}","pointer":"/stats/orders"}}}}`)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "idempotency.json")
	check.Require(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestConformExitCodes: the exit code is that of the worst result.
func TestConformExitCodes(t *testing.T) {
	t.Parallel()
	address, profile := newServerWithoutKeys(t)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"passes":      {[]string{address + "/", "--profile", profile, "--only", "23"}, exit.OK, "23  MAY"},
		"not shown":   {[]string{address, "--profile", profile, "--only", "15,23,39"}, exit.OK, "it takes two principals"},
		"a MUST":      {[]string{address, "--profile", profile, "--only", "23,14"}, exit.Failed, "the other payload got 201"},
		"a SHOULD":    {[]string{address, "--profile", profile, "--only", "23,24"}, exit.Warned, "warn: 24"},
		"unreachable": {[]string{"http://127.0.0.1:1", "--profile", profile}, exit.Unavailable, "cannot be reached"},
		"no profile":  {[]string{address}, exit.Usage, "publishes no profile"},
		"no URL":      {nil, exit.Usage, "requires at least 1 arg"},
		"a bad URL":   {[]string{"ftp://x", "--profile", profile}, exit.Usage, "want http://host"},
		"a bad flag":  {[]string{address, "--storm", "0"}, exit.Usage, "--storm"},
		"a bad file":  {[]string{address, "--profile", writeFile(t, `{"scope":"none"}`)}, exit.Usage, "scope"},
		"a bad case":  {[]string{address, "--profile", profile, "--only", "S1"}, exit.Usage, `no case "S1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, append([]string{"conform", "--parallel", "1"}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("ended with %d, want %d; wrote %q, printed %q, want %q", code, c.code, out, errs, c.says)
			}
		})
	}
}

// TestConformOutput: one line for each case, and the counts at the end.
func TestConformOutput(t *testing.T) {
	t.Parallel()
	address, profile := newServerWithoutKeys(t)
	_, out, _ := run(t, "conform", address, "--profile", profile, "--only", "13,14,23", "--parallel", "1", "--verbose")
	for _, want := range []string{
		"fail       14  MUST      A used key does not run again with another payload.\n",
		"pass       23  MAY ",
		"depends on the profile's key.forms, key.same\n",
		"MUST               0         1         0         0         0\n",
		"profile default: 3 cases, 1 passed; fail: 14; info: 13\n",
		"not declared (key.same), and seen: a key with quotes and one without are two keys\n",
		"curl -i -X POST '" + address + "/orders' -H 'Content-Type: application/json' -H 'Idempotency-Key: \"",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output is\n%s\nwithout %q", out, want)
		}
	}
}
