package semelhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// The middleware replays responses over a store without transactions.
func TestMiddlewareWithoutTransactions(t *testing.T) {
	t.Parallel()
	e, err := semel.NewRunner(plainstore.New(plainstore.Options{}), semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	wrap, err := semelhttp.Middleware(e, define("op", plain{}), options())
	if err != nil {
		t.Fatal(err)
	}
	n := new(atomic.Int64)
	srv := httptest.NewServer(wrap(secret(n)))
	t.Cleanup(srv.Close)
	first := testRequest{}.do(t, srv.URL)
	wantFirst(t, first, http.StatusCreated, "canary")
	wantReplay(t, testRequest{}.do(t, srv.URL), first)
	if n.Load() != 1 {
		t.Errorf("the handler runs %d times, want once", n.Load())
	}
}
