package semelhttp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
)

// TestTargetIsWhatTheClientSent: two endpoints behind http.StripPrefix, or behind a router
// that rewrites the path, are two requests.
func TestTargetIsWhatTheClientSent(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	protect := check.Must(semelhttp.Atomic(b.Engine, define("op", plain{}), options()))(t)
	inner := http.NewServeMux()
	inner.Handle("POST /orders", protect(created(n)))
	outer := http.NewServeMux()
	outer.Handle("/a/", http.StripPrefix("/a", inner))
	outer.Handle("/b/", http.StripPrefix("/b", inner))
	srv := httptest.NewServer(outer)
	t.Cleanup(srv.Close)
	first := testRequest{path: "/a/orders"}.do(t, srv.URL)
	wantFirst(t, first, http.StatusCreated, "run 1")
	wantReplay(t, testRequest{path: "/a/orders"}.do(t, srv.URL), first)
	wantProblem(t, testRequest{path: "/b/orders"}.do(t, srv.URL), http.StatusUnprocessableEntity, "key_reused")
	check.Equal(t, n.Load(), 1, "the handler ran")
}

// TestPatternsDoNotCount: a deployment that renames a route's wildcard, or moves
// the middleware, changes nothing for existing keys (rule 16).
func TestPatternsDoNotCount(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	protect := check.Must(semelhttp.Atomic(b.Engine, define("op", plain{}), options()))(t)
	serve := func(pattern string) string {
		mux := http.NewServeMux()
		mux.Handle(pattern, protect(created(n)))
		srv := httptest.NewServer(mux)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	first := testRequest{path: "/orders/1"}.do(t, serve("POST /orders/{id}"))
	wantFirst(t, first, http.StatusCreated, "run 1")
	for _, pattern := range []string{"POST /orders/{order}", "/orders/{id}", "/"} {
		wantReplay(t, testRequest{path: "/orders/1"}.do(t, serve(pattern)), first)
	}
}

// TestFingerprintHeadersCount, and no others, also for a response that the edge has cached.
func TestFingerprintHeadersCount(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, inMemory()), new(atomic.Int64)
	o := options()
	o.FingerprintHeaders = []string{"x-dry-run", "HOST", "If-Match"}
	protect := check.Must(semelhttp.Middleware(b.Engine, define("op", plain{}), o))(t)
	h := protect(created(n))
	send := func(key, host string, header ...string) answer {
		t.Helper()
		w, r := httptest.NewRecorder(), testRequest{key: []string{key}}.request(t, "http://ignored")
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		h.ServeHTTP(w, r)
		return answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	}
	first := send("k1", "a.example", "X-Dry-Run", "1")
	wantFirst(t, first, http.StatusCreated, "run 1")
	for range 2 { // from the record, from the edge's cache
		wantReplay(t, send("k1", "a.example", "X-Dry-Run", "1", "X-Other", "2"), first)
	}
	for name, got := range map[string]answer{
		"no header":     send("k1", "a.example"),
		"another value": send("k1", "a.example", "X-Dry-Run", "0"),
		"two values":    send("k1", "a.example", "X-Dry-Run", "1", "X-Dry-Run", "1"),
		"another one":   send("k1", "a.example", "X-Dry-Run", "1", "If-Match", "v2"),
		"another host":  send("k1", "b.example", "X-Dry-Run", "1"),
	} {
		check.Equal(t, got.status, http.StatusUnprocessableEntity, "%s:: %s", name, got.body)
	}
	for _, name := range []string{"Idempotency-Key", "authorization", "Date", "bad name", ""} {
		o.FingerprintHeaders = []string{name}
		if _, err := semelhttp.Middleware(b.Engine, define("op", plain{}), o); !isField(err, "FingerprintHeaders") {
			t.Errorf("FingerprintHeaders %q: %v, want a FieldError", name, err)
		}
	}
}

// TestHandleComparesTheTarget: one key at two paths, with another method or query,
// is two requests, although Decode returns the same; unless the endpoint ignores
// the target.
func TestHandleComparesTheTarget(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		op := semel.Define("transfer", semel.OperationOptions[int]{})
		h, err := semelhttp.Handle(semelhttp.Endpoint[int, string]{
			Operation: op, IgnoreTarget: ignores,
			Decode: func(r *http.Request) (amount int, err error) {
				return amount, json.NewDecoder(r.Body).Decode(&amount)
			},
			Run: func(ctx context.Context, c semel.Call, _ int) (string, bool, error) {
				return semel.Do(ctx, b.Engine, c, func(context.Context) (string, error) {
					n.Add(1)
					return "paid", nil
				})
			},
		}, options())
		check.Require(t, err)
		first := testRequest{path: "/accounts/1", body: "5"}.direct(t, h)
		wantFirst(t, first, http.StatusOK, "\"paid\"\n")
		wantReplay(t, testRequest{path: "/accounts/1", body: " 5"}.direct(t, h), first)
		for name, other := range map[string]testRequest{
			"path":   {path: "/accounts/2", body: "5"},
			"query":  {path: "/accounts/1?dry_run=1", body: "5"},
			"method": {path: "/accounts/1", method: "PUT", body: "5"},
		} {
			want := http.StatusUnprocessableEntity
			if ignores {
				want = http.StatusOK
			}
			got := other.direct(t, h)
			if got.status != want || !ignores && !strings.Contains(got.problem(t).Detail, "another method or target") {
				t.Errorf("another %s, ignored %v: got %d %s, want %d", name, ignores, got.status, got.body, want)
			}
		}
		reused := testRequest{path: "/accounts/1", body: "6"}.direct(t, h)
		wantProblem(t, reused, http.StatusUnprocessableEntity, "key_reused")
		if detail := reused.problem(t).Detail; !strings.Contains(detail, "another input") || strings.Contains(detail, "target") {
			t.Errorf("another body, ignored %v: the detail is %q", ignores, detail)
		}
		// The same operation and key without HTTP is the same record.
		_, replayed, err := semel.Do(t.Context(), b.Engine, op.Call(semel.ScopeOf("ann"), "k1", 5), func(context.Context) (string, error) {
			t.Error("the operation ran again")
			return "", nil
		})
		if !replayed || err != nil {
			t.Errorf("a call without a target: replayed %v, %v, want the first result", replayed, err)
		}
		check.Equal(t, n.Load(), 1, "runs")
	}
}

// TestJSONErrorsSayWhere: the problem names the field and the position, and no
// value.
func TestJSONErrorsSayWhere(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	var reported atomic.Int64
	o := options()
	o.ErrorFunc = func(_ *http.Request, err error) {
		if err != nil {
			reported.Add(1)
		}
	}
	type order struct {
		Amount int `json:"amount"`
	}
	h := check.Must(semelhttp.Handle(semelhttp.Endpoint[order, string]{
		Operation: semel.Define("order", semel.OperationOptions[order]{}),
		Decode: func(r *http.Request) (in order, err error) {
			return in, json.NewDecoder(r.Body).Decode(&in)
		},
		Run: func(ctx context.Context, c semel.Call, _ order) (string, bool, error) {
			return semel.Do(ctx, b.Engine, c, func(context.Context) (string, error) { return "", nil })
		},
	}, o))(t)
	for body, want := range map[string]string{
		`{"amount":"secret"}`: `The field "amount" must not be a JSON string.`,
		`["secret"]`:          `The body must not be a JSON array.`,
		`{"amount" 5}`:        `after object key, at byte 11.`,
		`{"amount":`:          `it ends early.`,
		` `:                   `The body is empty.`,
	} {
		got := testRequest{body: body}.direct(t, h)
		wantProblem(t, got, http.StatusBadRequest, "body_invalid")
		var p struct{ Detail string }
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || !strings.Contains(p.Detail, want) || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s: the detail is %q, %v, want %q in it", body, p.Detail, err, want)
		}
	}
	check.Equal(t, reported.Load(), 5, "errors were reported")
}

func isField(err error, name string) bool {
	field, ok := errtype.Find[*semel.FieldError](err)
	return ok && field.Field == name
}
