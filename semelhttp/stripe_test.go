package semelhttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// stripeError is the body of an error in the Stripe profile.
type stripeError struct {
	Error struct {
		Type, Code, Message, Param string
		DocURL                     string `json:"doc_url"`
	}
}

// wantStripe checks that a is an error of this package in the Stripe profile, and
// returns its message.
func wantStripe(t *testing.T, a answer, status int, kind, code string) string {
	t.Helper()
	var e stripeError
	check.NoError(t, json.Unmarshal([]byte(a.body), &e), "body %q", a.body)
	if a.status != status || e.Error.Type != kind || e.Error.Code != code {
		t.Errorf("got %d %s, want %d of type %q, code %q", a.status, a.body, status, kind, code)
	}
	if e.Error.Message == "" || !strings.HasPrefix(e.Error.DocURL, "/problems/") || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s as %q, want a message and a link in JSON", a.body, a.header.Get("Content-Type"))
	}
	if a.replayed() {
		t.Error("the layer's own error is marked as a replay")
	}
	return e.Error.Message
}

const (
	otherParameters = "Keys for idempotent requests can only be used with the same parameters"
	otherEndpoint   = "Keys for idempotent requests can only be used for the same endpoint"
)

// TestStripeErrors: each error of this package in the format of that vendor's
// clients, with what it says about retries.
func TestStripeErrors(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), profiled(semelhttp.Stripe), created(n))
		wantStripe(t, testRequest{key: []string{}}.do(t, srv), 400, "invalid_request_error", "key_missing")
		wantStripe(t, testRequest{key: []string{strings.Repeat("k", 256)}}.do(t, srv), 400, "invalid_request_error", "key_malformed")
		wantStripe(t, testRequest{user: "-"}.do(t, srv), 401, "invalid_request_error", "unauthenticated")
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "run 1")
		reused := testRequest{body: "other"}.do(t, srv)
		if m := wantStripe(t, reused, 400, "idempotency_error", ""); !strings.HasPrefix(m, otherParameters) {
			t.Errorf("message %q", m)
		}
		if got := reused.header.Get("Stripe-Should-Retry"); got != "false" {
			t.Errorf("Stripe-Should-Retry = %q of a key that was reused", got)
		}
		wantReplay(t, testRequest{}.do(t, srv), first)
		b.store.down.Store(true)
		down := testRequest{key: []string{"k2"}}.do(t, srv)
		wantStripe(t, down, 503, "api_error", "unavailable")
		if down.header.Get("Stripe-Should-Retry") != "true" || down.header.Get("Retry-After") == "" {
			t.Errorf("headers %v of a store that is down, want to be asked again", down.header)
		}
	})
}

// TestStripeOtherEndpoint: if one operation serves several endpoints, the error
// says that the key was used at another one, without its name.
func TestStripeOtherEndpoint(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), profiled(semelhttp.Stripe), func(w http.ResponseWriter, r *http.Request) {
			if refuse := r.Header.Get("X-Refuse"); refuse != "" {
				http.Error(w, refuse, http.StatusPaymentRequired)
				return
			}
			created(n)(w, r)
		})
		_ = testRequest{}.do(t, srv)
		refused := []string{"k2"}
		_ = testRequest{key: refused, header: http.Header{"X-Refuse": {"no funds"}}}.do(t, srv)
		for _, other := range []testRequest{{path: "/ops/7"}, {method: "PUT"}, {path: "/ops/7", key: refused}} {
			got := other.do(t, srv)
			if m := wantStripe(t, got, 400, "idempotency_error", ""); !strings.HasPrefix(m, otherEndpoint) {
				t.Errorf("%+v: message %q", other, m)
			}
			if strings.Contains(got.body, "/ops\"") || strings.Contains(got.body, "POST") {
				t.Errorf("%s names the other endpoint", got.body)
			}
		}
		// At the same endpoint the error is about the parameters; for another user
		// the key is unused.
		if m := wantStripe(t, testRequest{key: refused, body: "other"}.do(t, srv), 400, "idempotency_error", ""); !strings.HasPrefix(m, otherParameters) {
			t.Errorf("message %q", m)
		}
		wantFirst(t, testRequest{path: "/ops/7", user: "bob"}.do(t, srv), http.StatusCreated, "run 2")
	})
}

// TestStripeInUse: the running request is not disturbed, and the key stays valid.
func TestStripeInUse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{}), profiled(semelhttp.Stripe), func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			created(n)(w, r)
		})
		late := make(chan answer)
		sendLater(t, late)(srv)
		bar.held(t, late)
		got := testRequest{}.do(t, srv)
		wantStripe(t, got, http.StatusConflict, "invalid_request_error", "idempotency_key_in_use")
		if got.header.Get("Stripe-Should-Retry") != "true" || got.header.Get("Retry-After") == "" {
			t.Errorf("headers %v, want to be asked again", got.header)
		}
		close(bar.open)
		first := <-late
		wantFirst(t, first, http.StatusCreated, "run 1")
		wantReplay(t, testRequest{}.do(t, srv), first)
	})
}

// TestStripeMethods: every method that is not idempotent by itself is protected.
func TestStripeMethods(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), profiled(semelhttp.Stripe), created(n))
		for i, method := range []string{"GET", "DELETE", "DELETE", "GET"} {
			wantFirst(t, testRequest{method: method, user: "-"}.do(t, srv), http.StatusCreated, fmt.Sprintf("run %d", i+1))
		}
		for i, method := range []string{"POST", "PATCH", "PUT"} {
			key := []string{method}
			first := testRequest{method: method, key: key}.do(t, srv)
			wantFirst(t, first, http.StatusCreated, fmt.Sprintf("run %d", i+5))
			wantReplay(t, testRequest{method: method, key: key}.do(t, srv), first)
		}
	})
}

// TestStripeServerErrorThatCannotBeStored: a 500 whose response cannot be stored is
// not stored; a tombstone would say that the operation succeeded.
func TestStripeServerErrorThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]http.HandlerFunc{
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, strings.Repeat("x", 200))
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(500)
			_ = http.NewResponseController(w).Flush()
		},
		"no-store": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(500)
		},
	} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := profiled(semelhttp.Stripe)
		o.MaxResponse = 100
		h := func(w http.ResponseWriter, r *http.Request) { n.Add(1); breaks(w, r) }
		srv := b.leasedServer(t, define("m", plain{}), o, h)
		_ = testRequest{}.do(t, srv)
		wantStripe(t, testRequest{}.do(t, srv), http.StatusConflict, "invalid_request_error", "outcome_unknown")
		if s := b.record(t, "m", "k1").State; s != store.InDoubt || n.Load() != 1 {
			t.Errorf("%s: the record is %v after %d runs, want InDoubt after one", name, s, n.Load())
		}
		srv = b.atomicServer(t, define("a", plain{}), o, h)
		first, again := testRequest{}.do(t, srv), testRequest{}.do(t, srv)
		if first.status != 500 || first.replayed() || again.status != 500 || !again.replayed() {
			t.Errorf("%s behind Atomic: %d, then %d, replayed %v", name, first.status, again.status, again.replayed())
		}
		if s := b.record(t, "a", "k1").State; s != store.Failed || n.Load() != 2 {
			t.Errorf("%s behind Atomic: the record is %v after %d runs in all", name, s, n.Load())
		}
	}
}

// TestStripePanicsAreNotStored: there was no response, so nothing is stored.
func TestStripePanicsAreNotStored(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	srv := b.atomicServer(t, define("op", plain{}), profiled(semelhttp.Stripe), func(w http.ResponseWriter, r *http.Request) {
		if n.Load() == 0 {
			n.Add(1)
			w.WriteHeader(500)
			panic(http.ErrAbortHandler)
		}
		created(n)(w, r)
	})
	if got, ok := sendAlone(t, testRequest{}, srv); ok {
		t.Errorf("the client got %d, want a broken connection", got.status)
	}
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")
}

// TestStripeInTx: what was written inside the transaction is the outcome; a 500
// after a rollback has failed for good.
func TestStripeInTx(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), profiled(semelhttp.Stripe), func(w http.ResponseWriter, r *http.Request) {
		err := inTransaction(r, b, func(r *http.Request) error {
			fx.in(t, r)
			return io.ErrUnexpectedEOF
		})
		http.Error(w, err.Error(), http.StatusInternalServerError)
	})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusInternalServerError, "unexpected EOF\n")
	wantReplay(t, testRequest{}.do(t, srv), first)
	wantEffects(t, fx, 1, 0)
	check.Equal(t, b.record(t, "op", "k1").State, store.Failed, "the record (the rollback proves it)")
}
