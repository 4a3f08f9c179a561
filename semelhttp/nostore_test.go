package semelhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
)

// secret responds 201 with a text that must not be stored.
func secret(n *atomic.Int64, cacheControl ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header()["Cache-Control"] = cacheControl
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "canary")
	}
}

// wantNowhere checks that the record contains nothing of the response: neither as
// the outcome nor in the details of a failure.
func wantNowhere(t *testing.T, b *testEngine) {
	t.Helper()
	outcome := b.record(t, "op", "k1").Outcome
	for _, text := range []string{"canary", `"response"`} {
		if bytes.Contains(outcome, []byte(text)) {
			t.Errorf("the record holds %s: %q", text, outcome)
		}
	}
}

// TestNoStoreIsATombstone: the operation has happened, and its response is stored
// nowhere.
func TestNoStoreIsATombstone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, lines := range [][]string{
			{"no-store"},
			{"No-Store"},
			{"private, max-age=0,no-store , must-revalidate"},
			{"private", "no-store"},
		} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := serve(b, define("op", plain{}), options(), secret(n, lines...))
			wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "canary")
			wantTombstone(t, b, srv, n)
			wantNowhere(t, b)
		}
	})
}

// TestNoStoreInAnySpelling: a header that the handler has set without Header.Set is
// sent, so it counts.
func TestNoStoreInAnySpelling(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			w.Header()["cache-control"] = []string{"no-store"}
			secret(n, "private")(w, r)
		})
		wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "canary")
		wantTombstone(t, b, srv, n)
		wantNowhere(t, b)
	})
}

// TestKeepNoStore: with the option the response is stored, with its header.
func TestKeepNoStore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		o := options()
		o.KeepNoStore = true
		srv := serve(b, define("op", plain{}), o, secret(n, "no-store"))
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, http.StatusCreated, "canary")
		again := testRequest{}.do(t, srv)
		wantReplay(t, again, first)
		if got := again.header.Get("Cache-Control"); got != "no-store" || n.Load() != 1 {
			t.Errorf("replayed Cache-Control = %q after %d runs, want no-store after one", got, n.Load())
		}
	})
}

// TestOtherCacheControlIsStored: only no-store prevents storing.
func TestOtherCacheControlIsStored(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		for _, line := range []string{"no-cache", "private, max-age=0", `private="no-store"`, "x-no-store"} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := serve(b, define("op", plain{}), options(), secret(n, line))
			first := testRequest{}.do(t, srv)
			wantReplay(t, testRequest{}.do(t, srv), first)
		}
	})
}

// TestNoStoreInTx: the effect commits, the response is not stored.
func TestNoStoreInTx(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
			fx.in(t, r.WithContext(ctx))
			secret(n, "no-store")(w, r)
			return 0, nil
		})
		check.NoError(t, err, "InTx")
	})
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "canary")
	wantTombstone(t, b, srv, n)
	wantEffects(t, fx, 1, 1)
	wantNowhere(t, b)
}
