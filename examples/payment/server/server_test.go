package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/payment/server"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/sqlite"
)

// run serves the database in file until stop is called. lines has what the server prints after its URL.
func run(t *testing.T, file string, args ...string) (url string, lines *bufio.Reader, stop func()) {
	t.Helper()
	t.Attr("engine", "sqlite")
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- server.Main(ctx, append([]string{"-addr", "127.0.0.1:0", "-db", "sqlite:" + file}, args...), in, io.Discard)
		_ = in.Close()
	}()
	lines = bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	check.Require(t, err, "the server did not start")
	_, url, _ = strings.Cut(strings.TrimSpace(line), "serving ")
	stop = sync.OnceFunc(func() {
		cancel()
		check.Equal(t, <-ended, 0, "the server ended with")
	})
	t.Cleanup(stop)
	return url, lines, stop
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// answer is a response that was read.
type answer struct {
	status   int
	body     string
	replayed bool
}

// ask sends a request as a merchant. target is the method and the path.
func ask(t *testing.T, url, target, merchant, key, body string) answer {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	r := check.Must(http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body)))(t)
	if merchant != "" {
		r.SetBasicAuth(merchant, "")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp := check.Must(testClient.Do(r))(t)
	defer resp.Body.Close()
	text := check.Must(io.ReadAll(resp.Body))(t)
	return answer{resp.StatusCode, string(text), resp.Header.Get("Idempotent-Replayed") == "true"}
}

const (
	post = "POST /v1/charges"
	five = `{"amount":500,"currency":"EUR","reference":"order 7"}`
)

// count returns how often a merchant was charged with a reference.
func count(t *testing.T, url, merchant string) int {
	t.Helper()
	a := ask(t, url, "GET /v1/charges?reference=order+7", merchant, "", "")
	var v struct {
		Count   int
		Charges []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != http.StatusOK || v.Count != len(v.Charges) {
		t.Fatalf("GET = %d %s, %v", a.status, a.body, err)
	}
	return v.Count
}

// TestAKeyIsChargedOnce: a key is charged once, also when it is repeated after a
// restart. Another key, or another merchant, is charged again.
func TestAKeyIsChargedOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "payment.db")
	url, _, stop := run(t, file)
	first := ask(t, url, post, "shop", "k1", five)
	if first.status != http.StatusCreated || first.replayed {
		t.Fatalf("got %d %s, replayed %v", first.status, first.body, first.replayed)
	}
	stop()
	url, _, _ = run(t, file)
	again := ask(t, url, post, "shop", "k1", five)
	if again.status != first.status || again.body != first.body || !again.replayed {
		t.Errorf("repeated, got %d %s, replayed %v; want %s", again.status, again.body, again.replayed, first.body)
	}
	check.Equal(t, count(t, url, "shop"), 1, "charged")
	ask(t, url, post, "shop", "k2", five)
	ask(t, url, post, "other", "k1", five)
	if shop, other := count(t, url, "shop"), count(t, url, "other"); shop != 2 || other != 1 {
		t.Errorf("charged %d and %d times, want 2 and 1", shop, other)
	}
	if a := ask(t, url, post, "shop", "k1", strings.Replace(five, "500", "501", 1)); a.status != http.StatusUnprocessableEntity {
		t.Errorf("the key with another amount: %d %s", a.status, a.body)
	}
}

// TestADeclineIsKept: a declined charge is stored with its key.
func TestADeclineIsKept(t *testing.T) {
	t.Parallel()
	url, _, _ := run(t, filepath.Join(t.TempDir(), "payment.db"))
	much := strings.Replace(five, "500", "100001", 1)
	first, again := ask(t, url, post, "shop", "k1", much), ask(t, url, post, "shop", "k1", much)
	if first.status != http.StatusPaymentRequired || again.status != first.status || again.body != first.body || !again.replayed {
		t.Errorf("got %d %s, then %d %s, replayed %v", first.status, first.body, again.status, again.body, again.replayed)
	}
	if n := count(t, url, "shop"); n != 0 {
		t.Errorf("charged %d times, want never", n)
	}
}

// TestInvalidRequestIsNamed: an invalid request is rejected with the field's name, and
// does not claim its key.
func TestInvalidRequestIsNamed(t *testing.T) {
	t.Parallel()
	url, _, _ := run(t, filepath.Join(t.TempDir(), "payment.db"))
	for _, row := range []struct {
		name, target, merchant, key, body string
		status                            int
		field                             string
	}{
		{"no key", post, "shop", "", five, 400, "Idempotency-Key"},
		{"nobody", post, "", "k", five, 401, "Authorization"},
		{"nobody lists", "GET /v1/charges?reference=x", "", "", "", 401, "Authorization"},
		{"no reference", "GET /v1/charges", "shop", "", "", 400, "reference"},
		{"no object", post, "shop", "k", `[]`, 400, "body"},
		{"two objects", post, "shop", "k", five + five, 400, "body"},
		{"unknown field", post, "shop", "k", `{"amuont":500,"currency":"EUR","reference":"x"}`, 400, "body"},
		{"half a cent", post, "shop", "k", `{"amount":0.5,"currency":"EUR","reference":"x"}`, 400, "body"},
		{"nothing", post, "shop", "k", `{"amount":0,"currency":"EUR","reference":"x"}`, 400, "amount"},
		{"below nothing", post, "shop", "k", `{"amount":-1,"currency":"EUR","reference":"x"}`, 400, "amount"},
		{"no currency", post, "shop", "k", `{"amount":1,"currency":"eur","reference":"x"}`, 400, "currency"},
		{"no name", post, "shop", "k", `{"amount":1,"currency":"EUR","reference":" "}`, 400, "reference"},
		{"long name", post, "shop", "k", `{"amount":1,"currency":"EUR","reference":"` + strings.Repeat("x", 201) + `"}`, 400, "reference"},
		{"long body", post, "shop", "k", strings.Repeat(" ", 16<<10) + five, 413, "body"},
	} {
		a := ask(t, url, row.target, row.merchant, row.key, row.body)
		var p struct{ Field string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != row.status || p.Field != row.field {
			t.Errorf("%s: got %d %s, want %d about %s", row.name, a.status, a.body, row.status, row.field)
		}
	}
	if a := ask(t, url, post, "shop", "k", five); a.status != http.StatusCreated || a.replayed {
		t.Errorf("the key was used up: %d %s", a.status, a.body)
	}
}

// TestFlagsAreChecked: flags are checked before anything is opened.
func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args  []string
		code  int
		names string
	}{
		{[]string{"-help"}, 0, "-delay"},
		{[]string{"-addr", "nowhere"}, 2, "-addr"},
		{[]string{"-db", "mysql:x"}, 2, "-db"},
		{[]string{"-db", "sqlite:"}, 2, "-db"},
		{[]string{"-delay", "-1s"}, 2, "-delay"},
		{[]string{"serve"}, 2, "serve"},
		{[]string{"-x"}, 2, "-x"},
		{[]string{"-db", "sqlite:" + filepath.Join(t.TempDir(), "no", "such", "directory")}, 2, "directory"},
	} {
		var out, errs strings.Builder
		code := server.Main(t.Context(), row.args, &out, &errs)
		if code != row.code || !strings.Contains(out.String()+errs.String(), row.names) {
			t.Errorf("%v: code %d, said %q %q; want %d and %q", row.args, code, &out, &errs, row.code, row.names)
		}
	}
}

// TestStartWaitsForTheWriteLock: another process holds the write lock for longer than
// the busy_timeout while the service starts.
func TestStartWaitsForTheWriteLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "payment.db")
	db := check.Must(sqlite.Open(file))(t)
	t.Cleanup(func() { _ = db.Close() })
	tx := check.Must(db.BeginTx(t.Context(), nil))(t)
	time.AfterFunc(3*time.Second, func() { _ = tx.Rollback() })
	url, _, _ := run(t, file)
	if a := ask(t, url, "POST /v1/charges", "shop", `"k"`, `{"amount":1,"currency":"EUR","reference":"r"}`); a.status != http.StatusCreated {
		t.Errorf("a charge: %d %s", a.status, a.body)
	}
}

// TestMetrics: the address of -metrics serves the metrics of the engine and of the database.
func TestMetrics(t *testing.T) {
	t.Parallel()
	url, lines, _ := run(t, filepath.Join(t.TempDir(), "payment.db"), "-metrics", "127.0.0.1:0")
	_, metrics, _ := strings.Cut(strings.TrimSpace(check.Must(lines.ReadString('\n'))(t)), "metrics at ")
	for range 2 {
		check.Equal(t, ask(t, url, post, "shop", "k1", five).status, http.StatusCreated, "status")
	}
	text := ask(t, metrics, "GET ", "", "", "").body
	for _, want := range []string{
		`semel_events_total{db_system_name="sqlite",semel_event="replayed",semel_operation="create_charge"} 1`,
		`semel_records{db_system_name="sqlite",semel_operation="create_charge",semel_state="succeeded"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
}
