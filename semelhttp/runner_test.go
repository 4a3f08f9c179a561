package semelhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// The middleware replays responses over a store without transactions.
func TestMiddlewareWithoutTransactions(t *testing.T) {
	t.Parallel()
	e := check.Must(semel.NewRunner(plainstore.New(plainstore.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() {
		check.NoError(t, e.Close(context.WithoutCancel(t.Context())), "Close")
	})
	wrap := check.Must(semelhttp.Middleware(e, define("op", plain{}), options()))(t)
	n := new(atomic.Int64)
	srv := httptest.NewServer(wrap(created(n)))
	t.Cleanup(srv.Close)
	first := testRequest{}.do(t, srv.URL)
	wantFirst(t, first, http.StatusCreated, "run 1")
	wantReplay(t, testRequest{}.do(t, srv.URL), first)
	check.Equal(t, n.Load(), 1, "the handler runs")
}
