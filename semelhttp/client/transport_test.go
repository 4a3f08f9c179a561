package client_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/semelhttp/client"
)

// TestTransportRetries after everything that is no answer, with the key and
// the bytes of the first try.
func TestTransportRetries(t *testing.T) {
	t.Parallel()
	const inProgress = `HTTP/1.1 409 Conflict
Retry-After: 0
Content-Length: 30

half of`
	bad := map[string]http.HandlerFunc{
		"408":                        status(http.StatusRequestTimeout),
		"408 that says when":         status(http.StatusRequestTimeout, "Retry-After", "0"),
		"425":                        status(http.StatusTooEarly),
		"423 that says when":         status(http.StatusLocked, "Retry-After", "0"),
		"503 that says when":         status(http.StatusServiceUnavailable, "Retry-After", "0"),
		"429":                        status(http.StatusTooManyRequests),
		"502":                        status(http.StatusBadGateway),
		"503":                        status(http.StatusServiceUnavailable),
		"504":                        status(http.StatusGatewayTimeout),
		"429 that says when":         status(http.StatusTooManyRequests, "Retry-After", "0"),
		"500 that says so":           status(http.StatusInternalServerError, "Stripe-Should-Retry", "true"),
		"reset":                      reset(""),
		"closed":                     reset("\r\n"),
		"a header that ends early":   reset("HTTP/1.1 200 OK\r\nContent-"),
		"a body that ends early":     reset("HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nhalf"),
		"a refusal that ends early":  reset(strings.ReplaceAll(inProgress, "\n", "\r\n")),
		"a chunk that ends early":    reset("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal"),
		"a response that is none":    reset("What?\r\n\r\n"),
		"409 that says when":         status(http.StatusConflict, "Retry-After", "0"),
		"409 that should be retried": status(http.StatusConflict, "Stripe-Should-Retry", "true"),
		"409 in progress":            refusing(http.StatusConflict, `{"code":"in_progress"}`),
		"409 in chunks":              refusing(http.StatusConflict, `{"code":"in_progress"}`, "Transfer-Encoding", "chunked"),
		"409 as Stripe says it":      refusing(http.StatusConflict, `{"error":{"code":"idempotency_key_in_use"}}`, "Content-Type", "application/json"),
	}
	for name, first := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := plays(t, first, first, status(http.StatusCreated))
			got := trip(t, new(client.Transport), post(t, url, strings.NewReader("{\"n\":\x001}")))
			if got.status != http.StatusCreated || got.body != "Created" {
				t.Errorf("got %d %q, want what the third try was answered", got.status, got.body)
			}
			s.wantSame(t, 3, "{\"n\":\x001}")
		})
	}
}

// TestTransportReturnsFinalResponses for what it is, at the first try.
func TestTransportReturnsFinalResponses(t *testing.T) {
	t.Parallel()
	answers := map[string]http.HandlerFunc{
		"replayed 503":           status(http.StatusServiceUnavailable, "Idempotent-Replayed", "true", "Retry-After", "0"),
		"replayed 409":           status(http.StatusConflict, "Idempotent-Replayed", "true"),
		"409 with a code":        refusing(http.StatusConflict, `{"code":"outcome_unknown"}`),
		"409 in JSON":            refusing(http.StatusConflict, `{"error":"taken"}`, "Content-Type", "application/json"),
		"409 with a title":       refusing(http.StatusConflict, `{"title":"name taken"}`),
		"409 with another error": refusing(http.StatusConflict, `{"error":{"code":"resource_missing"}}`, "Content-Type", "application/json"),
		"409 with a list":        refusing(http.StatusConflict, `["in_progress"]`, "Content-Type", "application/json"),
		"409 that says never":    status(http.StatusConflict, "Retry-After", "0", "Stripe-Should-Retry", "false"),
		"409 code in text":       refusing(http.StatusConflict, `{"code":"in_progress"}`, "Content-Type", "text/plain"),
		"409 in chunks":          refusing(http.StatusConflict, `{"code":"outcome_unknown"}`, "Transfer-Encoding", "chunked"),
		"503 that says so":       status(http.StatusServiceUnavailable, "Stripe-Should-Retry", "false"),
		"400 that says nonsense": status(http.StatusBadRequest, "Stripe-Should-Retry", "true", "Retry-After", "0"),
		"401 that says nonsense": status(http.StatusUnauthorized, "Stripe-Should-Retry", "true", "Retry-After", "0"),
		"403 that says nonsense": status(http.StatusForbidden, "Stripe-Should-Retry", "true", "Retry-After", "0"),
		"422 that says nonsense": status(http.StatusUnprocessableEntity, "Stripe-Should-Retry", "true", "Retry-After", "0"),
		"422 with a problem":     refusing(http.StatusUnprocessableEntity, `{"code":"key_reused"}`),
	}
	for _, code := range []int{
		200, 201, 202, 204, 301, 303, 400, 401, 402, 403, 404, 405, 409, 410, 412, 413, 415, 422, 423, 500, 501, 505, 507,
	} {
		answers[fmt.Sprint(code)] = status(code)
	}
	for name, only := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := plays(t, only, status(http.StatusTeapot))
			want := httptest.NewRecorder()
			only(want, nil)
			got := trip(t, new(client.Transport), post(t, url, strings.NewReader("x")))
			if got.status != want.Code || got.body != want.Body.String() {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, want.Code, want.Body)
			}
			s.wantSame(t, 1, "x")
		})
	}
}

// TestTransportReturnsFinalResponsesWithoutAKey: nothing is in progress, and nothing
// protects what a server wants to have again.
func TestTransportReturnsFinalResponsesWithoutAKey(t *testing.T) {
	t.Parallel()
	for code, only := range map[int]http.HandlerFunc{
		http.StatusConflict:            status(http.StatusConflict, "Retry-After", "0"),
		http.StatusInternalServerError: status(http.StatusInternalServerError, "Stripe-Should-Retry", "true"),
	} {
		s, url := plays(t, only, status(http.StatusOK))
		r := post(t, url, nil)
		r.Method = http.MethodGet
		if got := trip(t, new(client.Transport), r); got.status != code || len(s.arrived()) != 1 {
			t.Errorf("got %d after %d tries, want %d after one", got.status, len(s.arrived()), code)
		}
	}
}

// TestTransportStopsAtMaxTries with the last response as it is.
func TestTransportStopsAtMaxTries(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("sorry ", 10_000)
	s, url := plays(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, long, http.StatusServiceUnavailable) })
	got := trip(t, &client.Transport{MaxTries: 3, MaxBody: 100}, post(t, url, strings.NewReader("x")))
	if got.status != http.StatusServiceUnavailable || got.body != long+"\n" {
		t.Errorf("got %d with %d bytes", got.status, len(got.body))
	}
	s.wantSame(t, 3, "x")
}

// TestTransportSendsOtherMethods: safe ones again and without a key, those that
// have a key again, and all others once.
func TestTransportSendsOtherMethods(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		method, key string
		tries       int
		keys        int
	}{
		{http.MethodGet, "", 2, 0},
		{"", "", 2, 0},
		{http.MethodHead, "", 2, 0},
		{http.MethodOptions, "", 2, 0},
		{http.MethodGet, "k", 2, 1},
		{http.MethodPost, "", 2, 1},
		{http.MethodPatch, "", 2, 1},
		{http.MethodPut, "", 1, 0},
		{http.MethodDelete, "", 1, 0},
		{http.MethodPut, "k", 2, 1},
		{http.MethodDelete, "k", 2, 1},
		{"PURGE", "", 1, 0},
	} {
		t.Run(row.method+row.key, func(t *testing.T) {
			t.Parallel()
			s, url := plays(t, status(http.StatusServiceUnavailable), status(http.StatusNoContent))
			r := post(t, url, nil)
			r.Method = row.method
			if row.key != "" {
				r.Header.Set(headerKey, row.key)
			}
			trip(t, new(client.Transport), r)
			tries := s.arrived()
			if len(tries) != row.tries || len(tries[0].keys) != row.keys {
				t.Errorf("%d tries came, the first with the keys %q; want %d with %d", len(tries), tries[0].keys, row.tries, row.keys)
			}
		})
	}
}

// TestTransportNamesTheInvalidField with its fields, and sends nothing.
func TestTransportNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	s, url := plays(t, status(http.StatusOK))
	for field, tr := range map[string]*client.Transport{
		"Budget":     {Budget: -1},
		"TryTimeout": {TryTimeout: -1},
		"MaxTries":   {MaxTries: -1},
		"MinBackoff": {MinBackoff: -1},
		"MaxBackoff": {MinBackoff: 2, MaxBackoff: 1},
		"MaxBody":    {MaxBody: -1},
		"Header":     {Header: "no header"},

		"RetryBudget.PerCall": {RetryBudget: &client.RetryBudget{PerCall: math.NaN()}},
		"RetryBudget.Burst":   {RetryBudget: &client.RetryBudget{Burst: -1}},
	} {
		b := newBody("x")
		_, err := tr.RoundTrip(post(t, url, b))
		wantFieldError(t, err, field)
		b.wantClosed(t)
	}
	s.none(t)
	trip(t, &client.Transport{MinBackoff: time.Minute}, post(t, url, nil)) // above the usual MaxBackoff
}
