package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// A client that writes its JSON anew for each try still asks for the same
// thing. Fields that are chosen later come as one more function in the list.
func ExampleJSONFields() {
	charge := semel.Define("charge", semel.OperationOptions[semelhttp.Request]{
		Fingerprints: []func(semelhttp.Request) any{semelhttp.JSONFields("amount", "currency")},
	})
	charges := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "charged") }
	postEach(charge, semelhttp.Options{ScopeFunc: scope}, charges,
		`{"amount":100,"currency":"EUR","try":1}`,
		`{"try":2, "currency":"EUR", "amount":1e2}`,
		`{"amount":200,"currency":"EUR","try":3}`)
	// Output:
	// 200 charged
	// 200 charged (replayed)
	// 422 key_reused
}

// The business has a number for it already, which is the key.
func ExampleKeyField() {
	ship := semel.Define("ship", semel.OperationOptions[semelhttp.Request]{})
	ships := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "shipped") }
	postEach(ship, semelhttp.Options{ScopeFunc: scope, KeyFunc: semelhttp.KeyField("order")}, ships,
		`{"order":"o-1"}`, `{"order":"o-1"}`, `{"order":"o-2"}`, `{}`)
	// Output:
	// 200 shipped
	// 200 shipped (replayed)
	// 200 shipped
	// 400 key_missing
}

// What the API promises about its keys is there for programs to read.
func ExampleDeclare() {
	declared, err := semelhttp.Declare(
		semelhttp.Options{ScopeFunc: scope, Profile: semelhttp.Strict},
		semelhttp.Terms{Retention: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /.well-known/idempotency", declared)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/.well-known/idempotency", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "profile") || strings.Contains(line, "seconds") {
			fmt.Print(strings.TrimSpace(line), "\n")
		}
	}
	// Output:
	// "profile": "strict",
	// "retention_seconds": 86400,
	// "wait_seconds": 0,
}

// postEach sends the bodies one after the other, with one key, and prints the
// answers.
func postEach(op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc, bodies ...string) {
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		panic(err)
	}
	once, err := semelhttp.Atomic(engine, op, o)
	if err != nil {
		panic(err)
	}
	for _, body := range bodies {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("X-User", "ann")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		once(h).ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Body)
		if _, code, found := strings.Cut(string(text), `"code":"`); found {
			code, _, _ = strings.Cut(code, `"`)
			fmt.Println(w.Code, code)
			continue
		}
		fmt.Printf("%d %s", w.Code, text)
		if w.Header().Get(semelhttp.HeaderReplayed) == "true" {
			fmt.Print(" (replayed)")
		}
		fmt.Println()
	}
}
