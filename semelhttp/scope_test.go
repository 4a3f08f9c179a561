package semelhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestScopeIsCheckedBeforeTheClaim: an unidentified caller gets 401 and uses no
// key.
func TestScopeIsCheckedBeforeTheClaim(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		asked := b.store.calls.Load()
		wantProblem(t, testRequest{user: "-", body: strings.Repeat("x", 2<<20)}.do(t, srv), http.StatusUnauthorized, "unauthenticated")
		if n.Load() != 0 || b.store.calls.Load() != asked {
			t.Error("a stranger reached the handler or the store")
		}
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 1")

		own := options()
		own.ScopeFunc = func(*http.Request) (semel.Scope, error) {
			return semel.Scope{}, fmt.Errorf("check: %w", &semelhttp.Problem{Status: http.StatusForbidden, Code: "blocked"})
		}
		got := testRequest{}.do(t, serve(b, define("other", plain{}), own, created(n)))
		if p := got.problem(t); got.status != http.StatusForbidden || p.Code != "blocked" || p.Title != "Forbidden" {
			t.Errorf("got %d %s, want ScopeFunc's own problem", got.status, got.body)
		}
	})
}

// TestNoScopeIsUnauthenticated: callers without a scope, or with an empty name, do not share
// responses.
func TestNoScopeIsUnauthenticated(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, scope := range []semel.Scope{{}, semel.ScopeOf("")} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			o := options()
			o.ScopeFunc = func(*http.Request) (semel.Scope, error) { return scope, nil }
			wantProblem(t, testRequest{}.do(t, serve(b, define("op", plain{}), o, created(n))), http.StatusUnauthorized, "unauthenticated")
			check.Equal(t, n.Load(), 0, "the handler ran")
		}
	})
}

func TestTwoUsersOneKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s's, run %d", r.Header.Get("X-User"), n.Add(1))
		})
		ann, bob := testRequest{user: "ann"}.do(t, srv), testRequest{user: "bob"}.do(t, srv)
		wantFirst(t, ann, http.StatusOK, "ann's, run 1")
		wantFirst(t, bob, http.StatusOK, "bob's, run 2")
		wantReplay(t, testRequest{user: "bob"}.do(t, srv), bob)
		wantReplay(t, testRequest{user: "ann"}.do(t, srv), ann)
		// Eve does not learn that ann used the key for something else.
		wantFirst(t, testRequest{user: "eve", body: "other"}.do(t, srv), http.StatusOK, "eve's, run 3")
	})
}
