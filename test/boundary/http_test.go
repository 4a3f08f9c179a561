package boundary_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

var httpOptions = semelhttp.Options{
	ScopeFunc: func(*http.Request) (semel.Scope, error) { return caller, nil },
	ErrorFunc: func(*http.Request, error) {}, // the tests compare what clients see
}

// post sends the request of the outer operation to h.
func post(t *testing.T, h http.Handler) (answer *httptest.ResponseRecorder, panicked bool) {
	t.Helper()
	defer func() { panicked = recover() != nil }()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/outer", strings.NewReader("in"))
	r.Header.Set(semelhttp.HeaderKey, "outer")
	answer = httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer, false
}

// codeOf is the code of a problem.
func codeOf(t *testing.T, answer *httptest.ResponseRecorder) string {
	t.Helper()
	var p semelhttp.Problem
	check.NoError(t, json.Unmarshal(answer.Body.Bytes(), &p), "%d %s is no problem", answer.Code, answer.Body)
	return p.Code
}

// TestInnerEndingDecidesNothingForEndpoints: however an inner call ends, the client
// of an endpoint gets the outcome of the outer operation.
func TestInnerEndingDecidesNothingForEndpoints(t *testing.T) {
	eachInnerCall(t, outerModes(), testEndpoint)
}

func testEndpoint(t *testing.T, by outerMode, end innerCall, shape func(error) error) {
	t.Helper()
	w := newFixture(t)
	body := end.body(t, w, shape)
	op := semel.Define("outer", by.plan)
	h := check.Must(semelhttp.Handle(semelhttp.Endpoint[string, string]{
		Operation: op,
		Decode:    func(*http.Request) (string, error) { return "in", nil },
		Run: func(ctx context.Context, c semel.Call, _ string) (string, bool, error) {
			return "done", false, by.run(ctx, w, c, body)
		},
	}, httpOptions))(t)
	answer, panicked := post(t, h)
	want := by.fails
	switch {
	case end.panics:
		want = by.panics
	case end.ofContext && by.ofContext != nil:
		want = *by.ofContext
	case end.wantError == nil && by.succeeds != nil:
		want = *by.succeeds
	case end.wantError == nil:
		check.Equal(t, answer.Code, http.StatusOK, "%s", answer.Body)
		return
	}
	if panicked != end.panics {
		t.Fatalf("panicked: %v, want %v", panicked, end.panics)
	}
	if !end.panics {
		wantProblem(t, answer, want, end)
	}
	call := op.Call(caller, "outer", "in")
	if state := w.record(t, call).State; by.plan.Generation == 0 && state != want.state {
		t.Errorf("the record is %v, want %v", state, want.state)
	}
	w.ahead.Add(int64(5 * time.Second))
	_, _ = post(t, h)
	check.Equal(t, w.effects(), want.effects, "after two requests there: effects")
}

// wantProblem checks the problem in the response of an endpoint.
func wantProblem(t *testing.T, answer *httptest.ResponseRecorder, want outcome, end innerCall) {
	t.Helper()
	status, code := http.StatusInternalServerError, "internal"
	switch {
	case want.state == store.Failed:
		status, code = http.StatusUnprocessableEntity, "failed"
	case want.verdict == store.Unknown:
		status, code = http.StatusServiceUnavailable, "outcome_unknown"
	case end.ofContext:
		status, code = http.StatusServiceUnavailable, "unavailable"
	}
	if got := codeOf(t, answer); answer.Code != status || got != code {
		t.Errorf("got %d %s, want %d %s", answer.Code, got, status, code)
	}
}

// middleware is one way to put a handler behind package semelhttp.
type middleware struct {
	plan  semel.OperationOptions[semelhttp.Request]
	wrap  func(w *fixture, op *semel.Operation[semelhttp.Request]) (func(http.Handler) http.Handler, error)
	tx    func(ctx context.Context, w *fixture, body body) error // how the handler runs body
	fails outcome
	code  int // of the answer to a handler that answers 500
}

func direct(ctx context.Context, w *fixture, body body) error { return body(ctx, w.effect) }

func ofContext(ctx context.Context, w *fixture, body body) error {
	tx, _ := semel.TxOf(ctx, w.engine)
	return body(ctx, w.effectIn(tx))
}

func claimedByMiddleware(w *fixture, op *semel.Operation[semelhttp.Request]) (func(http.Handler) http.Handler, error) {
	return semelhttp.Middleware(w, op, httpOptions)
}

func inOneTx(w *fixture, op *semel.Operation[semelhttp.Request]) (func(http.Handler) http.Handler, error) {
	return semelhttp.Atomic(w.engine, op, httpOptions)
}

func middlewares() map[string]middleware {
	type options = semel.OperationOptions[semelhttp.Request]
	inDoubt := outcome{store.InDoubt, store.Unknown, 1}
	secondCall := outcome{store.Pending, store.Unknown, 2}
	gone := outcome{store.Absent, store.NotCommitted, 0}
	return map[string]middleware{
		"Middleware":              {wrap: claimedByMiddleware, tx: direct, fails: inDoubt, code: 503},
		"Middleware, AtLeastOnce": {plan: options{Policy: semel.AtLeastOnce()}, wrap: claimedByMiddleware, tx: direct, fails: secondCall, code: 503},
		"Atomic":                  {wrap: inOneTx, tx: ofContext, fails: gone, code: 500},
		"Atomic, Keep":            {plan: options{OnError: semel.Keep}, wrap: inOneTx, tx: ofContext, fails: gone, code: 500},
		"Atomic, leased": {
			plan: options{Policy: semel.Atomic(), Lease: lease}, wrap: inOneTx, tx: ofContext,
			fails: outcome{store.Pending, store.NotCommitted, 0}, code: 500,
		},
		"InTx": {
			plan: options{Policy: semel.Atomic()}, wrap: claimedByMiddleware,
			tx: func(ctx context.Context, w *fixture, body body) error {
				_, err := semel.InTx(ctx, w.engine, func(ctx context.Context, tx *memory.Tx) (string, error) { return "", body(ctx, w.effectIn(tx)) })
				return err
			},
			fails: outcome{store.Pending, store.NotCommitted, 0}, code: 500,
		},
	}
}

// TestInnerEndingDecidesNothingForMiddleware: however an inner call ends, the status that
// the handler answers decides, and nothing else.
func TestInnerEndingDecidesNothingForMiddleware(t *testing.T) {
	eachInnerCall(t, middlewares(), testMiddleware)
}

func testMiddleware(t *testing.T, by middleware, end innerCall, shape func(error) error) {
	t.Helper()
	w := newFixture(t)
	body := end.body(t, w, shape)
	op := semel.Define("outer", by.plan)
	wrap := check.Must(by.wrap(w, op))(t)
	h := wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		err := by.tx(r.Context(), w, func(ctx context.Context, effect func()) error {
			err := body(ctx, effect)
			if err == nil {
				rw.WriteHeader(http.StatusCreated)
			}
			return err
		})
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	}))
	answer, panicked := post(t, h)
	if panicked != end.panics {
		t.Fatalf("panicked: %v, want %v", panicked, end.panics)
	}
	if end.wantError == nil && !end.panics {
		check.Equal(t, answer.Code, http.StatusCreated, "%s", answer.Body)
		return
	}
	if state := w.record(t, op.Call(caller, "outer", semelhttp.Request{})).State; state != by.fails.state {
		t.Errorf("the record is %v, want %v", state, by.fails.state)
	}
	if !end.panics && answer.Code != by.code {
		t.Errorf("got %d %s, want %d", answer.Code, answer.Body, by.code)
	}
	w.ahead.Add(int64(5 * time.Second))
	_, _ = post(t, h)
	check.Equal(t, w.effects(), by.fails.effects, "after two requests there: effects")
}
