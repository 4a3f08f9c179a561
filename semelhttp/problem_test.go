package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

func TestProblemOf(t *testing.T) {
	t.Parallel()
	own := &semelhttp.Problem{Status: 418, Code: "teapot"}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		"mismatch":           {semel.ErrMismatch, 422, "key_reused", false},
		"in progress":        {semel.ErrInProgress, 409, "in_progress", true},
		"in doubt":           {semel.ErrInDoubt, 409, "outcome_unknown", false},
		"unknown":            {semel.ErrOutcomeUnknown, 503, "outcome_unknown", true},
		"expired":            {semel.ErrKeyExpired, 410, "key_expired", false},
		"tombstone":          {semel.ErrResultUnavailable, 409, "result_unavailable", false},
		"unavailable":        {semel.ErrUnavailable, 503, "unavailable", true},
		"closed":             {semel.ErrClosed, 503, "unavailable", true},
		"wrapped":            {fmt.Errorf("run: %w", semel.ErrMismatch), 422, "key_reused", false},
		"bad key":            {&semel.FieldError{Field: "Key", Reason: "carries no time"}, 400, "key_malformed", false},
		"bad scope":          {&semel.FieldError{Field: "Scope", Reason: "is required"}, 500, "internal", false},
		"client gone":        {context.Canceled, 503, "unavailable", true},
		"own":                {own, 418, "teapot", false},
		"own, wrapped":       {fmt.Errorf("run: %w", own), 418, "teapot", false},
		"own, not committed": {&semel.AttemptError{Verdict: store.NotCommitted, Err: own}, 418, "teapot", false},
		"own, unknown":       {&semel.AttemptError{Verdict: store.Unknown, State: store.InDoubt, Err: own}, 503, "outcome_unknown", true},
		"failure":            {&semel.Failure{Code: "lost", Message: "gone"}, 422, "lost", false},
		"nameless failure":   {&semel.Failure{Message: "gone"}, 422, "failed", false},
		"another":            {errors.New("password=hunter2"), 500, "internal", false},
		"too large":          {&http.MaxBytesError{Limit: 1}, 413, "body_too_large", false},
	} {
		p := semelhttp.ProblemOf(c.err)
		if p.Status != c.status || p.Code != c.code || (p.RetryAfter > 0) != c.retry {
			t.Errorf("%s: ProblemOf = %+v, want %d %s, retry %v", name, p, c.status, c.code, c.retry)
		}
		if strings.Contains(p.Detail, "hunter2") {
			t.Errorf("%s: %s", name, p.Detail)
		}
	}
	if p := semelhttp.ProblemOf(nil); p != nil {
		t.Errorf("ProblemOf(nil) = %+v", p)
	}
	if p := semelhttp.ProblemOf(semel.ErrResultUnavailable); !strings.Contains(p.Title, "succeeded") {
		t.Errorf("%q does not say that it succeeded", p.Title)
	}
}

func TestProblemIsWritten(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Encoding", "gzip")
	p := &semelhttp.Problem{Status: 429, Code: "slow", Detail: "too fast", Field: "n", RetryAfter: 1500 * time.Millisecond}
	p.Write(w)
	want := `{"title":"Too Many Requests","status":429,"detail":"too fast","code":"slow","field":"n"}`
	if w.Code != 429 || w.Body.String() != want {
		t.Errorf("wrote %d %s, want %s", w.Code, w.Body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Retry-After": "2", "Cache-Control": "no-cache", "Content-Encoding": "",
	} {
		check.Equal(t, w.Header().Get(name), want, "%s", name)
	}
	if got, want := p.Error(), "slow: too fast"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got, want := new(semelhttp.Problem).Error(), "Internal Server Error"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

// TestRetryAfterIsRoundedUp, however long it is.
func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		0: "", 1: "1", time.Second: "1", time.Second + 1: "2", math.MaxInt64: "9223372037",
	} {
		w := httptest.NewRecorder()
		(&semelhttp.Problem{RetryAfter: wait}).Write(w)
		check.Equal(t, w.Header().Get("Retry-After"), want, "Retry-After of %v", wait)
	}
}

// TestProblemTypesAreDocumented: the type of every problem is an address that
// responds.
func TestProblemTypesAreDocumented(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/docs/errors/", semelhttp.Problems())
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	b := newTestEngine(t, semel.Options{})
	o := options()
	o.ProblemBase = srv.URL + "/docs/errors/"
	api := b.leasedServer(t, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for _, a := range []testRequest{
		{key: []string{}},
		{key: []string{""}},
		{user: "-"},
		{body: strings.Repeat("x", 2<<20)},
		{},
		{},
		{body: "other"},
	} {
		p := a.do(t, api).problem(t)
		page := get(t, p.Type)
		if !strings.Contains(page, p.Code) || !strings.Contains(page, p.Title) || !strings.Contains(page, "What to do") {
			t.Errorf("%s: the page at %s is %q", p.Code, p.Type, page)
		}
	}
	list := get(t, srv.URL+"/docs/errors/")
	for code := range declared(t, o, semelhttp.Terms{Retention: time.Hour}).Statuses {
		if !strings.Contains(list, `href="`+code+`"`) {
			t.Errorf("the list does not name %s", code)
		}
		if page := get(t, srv.URL+"/docs/errors/"+code); !strings.Contains(page, code) {
			t.Errorf("no page for %s", code)
		}
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/errors/nonsense", http.NoBody))
	check.Equal(t, w.Code, http.StatusNotFound, "nonsense")
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	check.Require(t, err)
	resp, err := testClient.Do(req)
	check.Require(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check.Result(resp.StatusCode, err)(t, http.StatusOK, "GET %s", url)
	return string(body)
}

func TestOptionsNameTheField(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	op := define("op", plain{})
	for field, o := range map[string]semelhttp.Options{
		"ScopeFunc":     {},
		"MaxBody":       {ScopeFunc: byUser, MaxBody: -1},
		"MaxResponse":   {ScopeFunc: byUser, MaxResponse: -1},
		"ReplayHeaders": {ScopeFunc: byUser, ReplayHeaders: []string{"X-Fine", "set-cookie"}},
	} {
		_, err1 := semelhttp.Atomic(b.Engine, op, o)
		_, err2 := semelhttp.Middleware(b.Engine, op, o)
		_, err3 := semelhttp.Handle(newShop(b, semel.OperationOptions[order]{}).Endpoint, o)
		for _, err := range []error{err1, err2, err3} {
			var f *semel.FieldError
			if !errors.As(err, &f) || f.Field != field {
				t.Errorf("%s: got %v", field, err)
			}
		}
	}
	for _, name := range []string{
		"Set-Cookie", "DATE", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
		"proxy-authenticate", "www-authenticate", "idempotent-replayed", "", "X Y", "X:Y", "X\r\nY",
	} {
		o := options()
		o.ReplayHeaders = []string{name}
		if _, err := semelhttp.Atomic(b.Engine, op, o); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("ReplayHeaders %q: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := semelhttp.Atomic(b.Engine, nil, options()); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("no operation: %v", err)
	}
	if _, err := semelhttp.Atomic(b.Engine, define("POST /orders", plain{}), options()); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("an operation with a wrong name: %v", err)
	}
	if _, err := semelhttp.Atomic[semelTx](nil, op, options()); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("no engine: %v", err)
	}
	if _, err := semelhttp.Middleware(nil, op, options()); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("no engine: %v", err)
	}
	for field, ep := range map[string]semelhttp.Endpoint[order, receipt]{
		"Operation": {},
		"Decode":    {Operation: semel.Define("order", semel.OperationOptions[order]{})},
		"Run":       {Operation: semel.Define("order", semel.OperationOptions[order]{}), Decode: decodeOrder},
	} {
		_, err := semelhttp.Handle(ep, options())
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Handle without %s: %v", field, err)
		}
	}
}

// TestReplayHeadersAreAdded: the requested headers are stored, but not those that
// the response assigns to its connection.
func TestReplayHeadersAreAdded(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	o := options()
	o.ReplayHeaders = []string{"x-kept", "X-Hop"}
	srv := b.atomicServer(t, define("op", plain{}), o, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Kept", "1")
		w.Header().Set("X-Hop", "2")
		w.Header().Set("X-Other", "3")
		w.Header()["connection"] = []string{"x-hop"}
		w.Header()["location"] = []string{"/there"} // in a spelling that Header.Set does not write
	})
	_ = testRequest{}.do(t, srv)
	again := testRequest{}.do(t, srv)
	if !again.replayed() || again.header.Get("X-Kept") != "1" || again.header.Get("Location") != "/there" || again.header.Get("X-Hop") != "" || again.header.Get("X-Other") != "" {
		t.Errorf("replayed %v", again.header)
	}
}
