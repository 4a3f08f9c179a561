package semelhttp_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
)

// TestStripeEndpoint: errors of an endpoint's function have the same format, stored
// or not.
func TestStripeEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		status     int
		kind, code string
		message    string
		kept       bool
	}{
		"kept failure": {semel.Final(&semel.Failure{Code: "card_declined", Message: "no funds"}), 422, "invalid_request_error", "card_declined", "no funds", true},
		"problem":      {&semelhttp.Problem{Status: 404, Code: "no_shop", Field: "shop"}, 404, "invalid_request_error", "no_shop", "Not Found", false},
		"some error":   {http.ErrServerClosed, 500, "api_error", "internal", "", false},
	} {
		b := newTestEngine(t, semel.Options{})
		s := newShop(b, semel.OperationOptions[order]{})
		s.fail = c.err
		srv := s.serve(t, profiled(semelhttp.Stripe))
		first := testRequest{body: tea}.do(t, srv)
		for _, want := range []string{`"type":"` + c.kind + `"`, `"code":"` + c.code + `"`, `"message":"` + c.message} {
			if first.status != c.status || !strings.Contains(first.body, want) {
				t.Errorf("%s: got %d %s, want %d with %s", name, first.status, first.body, c.status, want)
			}
		}
		s.fail = nil
		if again := (testRequest{body: tea}).do(t, srv); again.replayed() != c.kept {
			t.Errorf("%s: the repeat got %d, replayed %v", name, again.status, again.replayed())
		}
	}
}

// TestStripeEndpointIsTheTarget: a handler that changes its request's path does not
// change the endpoint.
func TestStripeEndpointIsTheTarget(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), profiled(semelhttp.Stripe), func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = "/internal" + r.URL.Path
			created(n)(w, r)
		})
		_ = testRequest{}.do(t, srv)
		if got := (testRequest{body: `{"n":2}`}).do(t, srv); strings.Contains(got.body, otherEndpoint) {
			t.Errorf("the same endpoint is reported as another one: %s", got.body)
		}
		if got := (testRequest{path: "/ops/7"}).do(t, srv); !strings.Contains(got.body, otherEndpoint) {
			t.Errorf("another endpoint is reported as %s", got.body)
		}
	})
}
