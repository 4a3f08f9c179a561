package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/edge"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// serve returns a handler that counts its runs, and the count. A request to a path
// that ends in a status is answered with that status.
func serve(t *testing.T, o semel.OperationOptions[semel.Raw]) (http.Handler, *atomic.Int32) {
	t.Helper()
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	runs := new(atomic.Int32)
	user := func(r *http.Request) semel.Scope { return semel.ScopeOf(r.Header.Get("User")) }
	return edge.Once(engine, semel.Define("pay", o), user, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := runs.Add(1)
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/panics":
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Location", "/payments/1")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "payment %d", n)
		}
	})), runs
}

func post(t *testing.T, h http.Handler, path, user, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("User", user)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	h.ServeHTTP(w, r)
	return w
}

func TestRetriesReceiveTheStoredResponse(t *testing.T) {
	t.Parallel()
	h, runs := serve(t, semel.OperationOptions[semel.Raw]{})
	for i := range 3 {
		w := post(t, h, "/payments", "ann", "k", "5 EUR")
		if w.Code != http.StatusCreated || w.Body.String() != "payment 1" || w.Header().Get("Location") != "/payments/1" {
			t.Errorf("request %d: %d %q %v", i, w.Code, w.Body, w.Header())
		}
		if replayed := w.Header().Get("Idempotent-Replayed") == "true"; replayed != (i > 0) {
			t.Errorf("request %d: replayed = %t", i, replayed)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
	if w := post(t, h, "/payments", "bob", "k", "5 EUR"); w.Body.String() != "payment 2" {
		t.Errorf("another user with the same key: %q, want a payment of its own", w.Body)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h, runs := serve(t, semel.OperationOptions[semel.Raw]{})
	post(t, h, "/payments", "ann", "k", "5 EUR")
	for name, tt := range map[string]struct {
		path, user, key, body string
		status                int
	}{
		"no key":         {"/payments", "ann", "", "5 EUR", http.StatusBadRequest},
		"no user":        {"/payments", "", "k", "5 EUR", http.StatusBadRequest},
		"other body":     {"/payments", "ann", "k", "6 EUR", http.StatusUnprocessableEntity},
		"other target":   {"/refunds", "ann", "k", "5 EUR", http.StatusUnprocessableEntity},
		"body too large": {"/payments", "ann", "l", strings.Repeat("5", 2<<20), http.StatusBadRequest},
	} {
		if w := post(t, h, tt.path, tt.user, tt.key, tt.body); w.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tt.status)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

// TestServerErrorLeavesTheKeyInDoubt: the handler's effect is unknown after a
// response from 500 up and after a panic, so the default policy does not run it again.
func TestServerErrorLeavesTheKeyInDoubt(t *testing.T) {
	t.Parallel()
	h, runs := serve(t, semel.OperationOptions[semel.Raw]{})
	if w := post(t, h, "/broken", "ann", "k", "5 EUR"); w.Code < http.StatusInternalServerError {
		t.Errorf("after a server error: %d %s", w.Code, w.Body)
	}
	func() {
		defer func() { _ = recover() }()
		post(t, h, "/panics", "ann", "l", "5 EUR")
	}()
	for path, key := range map[string]string{"/broken": "k", "/panics": "l"} {
		if w := post(t, h, path, "ann", key, "5 EUR"); w.Code != http.StatusConflict {
			t.Errorf("a retry of %s: %d %s, want 409", path, w.Code, w.Body)
		}
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want once for each key", n)
	}
}

// TestServerErrorRunsAgain: under AtLeastOnce a retry runs the handler again.
func TestServerErrorRunsAgain(t *testing.T) {
	t.Parallel()
	h, runs := serve(t, semel.OperationOptions[semel.Raw]{Policy: semel.AtLeastOnce()})
	post(t, h, "/broken", "ann", "k", "5 EUR")
	post(t, h, "/broken", "ann", "k", "5 EUR")
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
}
