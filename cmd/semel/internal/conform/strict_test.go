package conform_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/cmd/semel/internal/conform"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// unmarked removes the marker of replays, which the draft does not define.
type unmarked struct{ http.ResponseWriter }

func (w unmarked) WriteHeader(status int) {
	w.Header().Del(semelhttp.HeaderReplayed)
	w.ResponseWriter.WriteHeader(status)
}

// strict starts a server that follows the draft literally and declares nothing:
// it accepts only keys in quotes, and marks no replay.
func strict(t *testing.T) string {
	t.Helper()
	engine := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	protect := check.Must(semelhttp.Atomic(engine, semel.Define("order", semel.OperationOptions[semelhttp.Request]{}), semelhttp.Options{
		Profile:   semelhttp.Strict,
		ErrorFunc: func(*http.Request, error) {},
		ScopeFunc: func(r *http.Request) (semel.Scope, error) { return semel.ScopeOf(r.Header.Get("Authorization")), nil },
	}))(t)
	var mu sync.Mutex
	made := make(map[string]int)
	orders := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var order struct{ Item string }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			http.Error(w, "the body is not JSON", http.StatusBadRequest)
			return
		}
		mu.Lock()
		made[order.Item]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"`+rand.Text()+`"}`)
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) { orders.ServeHTTP(unmarked{w}, r) })
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]int{"total": made[r.URL.Query().Get("item")]})
	})
	mux.Handle("GET /problems/", semelhttp.Problems())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestStrictServerPasses: behavior that the server does not declare and the
// draft leaves open is reported and is not a failure.
func TestStrictServerPasses(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]string{"counter": "/orders?item={{op}}#/total", "no counter": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := check.Must(conform.ParseEndpoint("POST /orders", `{"item":"{{op}}","amount":{{n}}}`, count))(t)
			p := conform.UndeclaredProfile()
			p.Suite.Endpoint = e
			p.Suite.Principals = []map[string]string{{"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}}
			report := hold(t, strict(t), &p, brief())
			for _, r := range report.With(conform.Fail, conform.Warn) {
				t.Errorf("case %s: %s: %s %v", r.ID, r.Verdict, r.Detail, r.Exchanges)
			}
			var observed []string
			for _, r := range report.With(conform.Info) {
				observed = append(observed, r.ID)
				if !strings.Contains(r.Detail, "not declared") {
					t.Errorf("case %s: %q does not say that it is not declared", r.ID, r.Detail)
				}
			}
			if want := []string{"2", "3", "4", "11", "13", "46"}; !slices.Equal(observed, want) {
				t.Errorf("observed are %q, want %q", observed, want)
			}
		})
	}
}

// TestUnsafeBehaviorFailsUndeclaredToo: a server that declares nothing fails if
// it runs a request twice, or gives one caller the answer of another.
func TestUnsafeBehaviorFailsUndeclaredToo(t *testing.T) {
	t.Parallel()
	for flaw, fails := range map[flaw]string{
		ignoresKeys: "1 30", sharesPrincipals: "15", noFingerprint: "14", takesFirstLine: "7", takesEmpty: "10",
		cutsOff: "11", foldsCase: "9",
	} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			address, declared := newFakeServer(t, flaw, hasOwnEndpoint, publishesNothing)
			p := conform.UndeclaredProfile()
			p.Suite = declared.Suite
			var failed []string
			for _, r := range hold(t, address, &p, brief()).With(conform.Fail) {
				failed = append(failed, r.ID)
			}
			for want := range strings.FieldsSeq(fails) {
				if !slices.Contains(failed, want) {
					t.Errorf("fails %q, want case %s among them", failed, want)
				}
			}
		})
	}
}

// TestResultsComeInTheOrderOfTheCases, whichever case ends first.
func TestResultsComeInTheOrderOfTheCases(t *testing.T) {
	t.Parallel()
	address, p := newFakeServer(t, hasOwnEndpoint)
	var reported, want []string
	o := brief()
	o.OnResult = func(r conform.Result) { reported = append(reported, r.ID) }
	for _, r := range hold(t, address, p, o).Results {
		want = append(want, r.ID)
	}
	if !slices.Equal(reported, want) {
		t.Errorf("results in the order %q, want %q", reported, want)
	}
}

// TestCommandLinesOfAnEndpoint: errors name the flag.
func TestCommandLinesOfAnEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{
		{"POST /orders", "", "", "--body"},
		{"POST /orders", `{"item":"x"}`, "", "{{op}}"},
		{"POST /orders", `{"item":"{{op}}"}`, "", "{{n}}"},
		{"POST orders", "{{op}}{{n}}", "", "slash"},
		{"POST /orders", "{{op}}{{n}}", "#/total", "--count"},
		{"POST /orders", "{{op}}{{n}}", "/orders#total", "pointer"},
	} {
		if _, err := conform.ParseEndpoint(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), c[3]) {
			t.Errorf("ParseEndpoint(%q, %q, %q): %v, want an error about %s", c[0], c[1], c[2], err, c[3])
		}
	}
}

// TestCurlKeepsSecrets: a failure report contains the name of an environment
// variable, not its value.
func TestCurlKeepsSecrets(t *testing.T) {
	t.Setenv("CONFORM_TOKEN", "secret")
	address, p := newFakeServer(t, hasOwnEndpoint, ignoresKeys)
	p.Suite.Principals[0] = map[string]string{"Authorization": "Bearer a", "X-Token": "${CONFORM_TOKEN}"}
	o := brief()
	o.Only = []string{"1"}
	r := hold(t, address, p, o).Results[0]
	if len(r.Exchanges) == 0 {
		t.Fatalf("case 1: %s: no exchanges", r.Verdict)
	}
	for _, x := range r.Exchanges {
		if strings.Contains(x.Request, "secret") || !strings.Contains(x.Request, `-H "X-Token: ${CONFORM_TOKEN}"`) {
			t.Errorf("the command line is %s", x.Request)
		}
		if !regexp.MustCompile(`-H 'Idempotency-Key: "[^"]+"'`).MatchString(x.Request) {
			t.Errorf("the command line has no key: %s", x.Request)
		}
	}
}
