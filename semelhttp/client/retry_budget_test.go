package client_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp/client"
)

// TestRetryBudgetLimitsAllCallsTogether: calls of two Transports use up one budget, and
// later calls earn retries.
func TestRetryBudgetLimitsAllCallsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := true
		b := &tripper{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if down {
				return respond(r, http.StatusServiceUnavailable), nil
			}
			return respond(r, http.StatusCreated), nil
		}}
		budget := &client.RetryBudget{PerCall: 0.25, Burst: 3}
		one, two := &client.Transport{Base: b, RetryBudget: budget}, &client.Transport{Base: b, RetryBudget: budget}
		ask := func(tr *client.Transport) (tries, status int) {
			t.Helper()
			resp := check.Must(tr.RoundTrip(post(t, "http://x", newBody("bytes"))))(t)
			resp.Body.Close()
			return client.TriesOf(resp), resp.StatusCode
		}
		if n, status := ask(one); n != 4 || status != http.StatusServiceUnavailable {
			t.Errorf("the first call made %d tries and got %d, want 4 and 503", n, status)
		}
		if n, _ := ask(two); n != 1 {
			t.Errorf("a call without a budget made %d tries, want 1", n)
		}
		down = false
		for range 3 {
			if n, status := ask(two); n != 1 || status != http.StatusCreated {
				t.Errorf("a call that is answered made %d tries and got %d", n, status)
			}
		}
		down = true
		if n, _ := ask(one); n != 2 {
			t.Errorf("a call after others have earned a retry made %d tries, want 2", n)
		}
	})
}

// TestTransportSendsTheKeyInAnotherHeader: the header of Transport.Header is the only one
// that carries a key.
func TestTransportSendsTheKeyInAnotherHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		b := &tripper{answer: func(try int, r *http.Request) (*http.Response, error) {
			lines = append(lines, r.Header.Get("Paypal-Request-Id"))
			check.Equal(t, r.Header.Get(headerKey), "", "the request has an Idempotency-Key too")
			if try == 1 {
				return respond(r, http.StatusServiceUnavailable), nil
			}
			return respond(r, http.StatusCreated), nil
		}}
		tr := &client.Transport{Base: b, Header: "PayPal-Request-Id", RawKeys: true}
		resp, err := tr.RoundTrip(post(t, "http://x", newBody("bytes")))
		check.Require(t, err)
		resp.Body.Close()
		if len(lines) != 2 || lines[0] == "" || lines[0] != lines[1] {
			t.Errorf("the keys of the tries are %q, want one key twice", lines)
		}
	})
}
