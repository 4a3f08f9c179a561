package semelhttp_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestGuessingKeysRevealsNothing: for another user a key in any state is like an
// unused key.
func TestGuessingKeysRevealsNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newTestEngine(t, semel.Options{}), new(atomic.Int64), newBarrier()
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			if r.Header.Get("X-User") == "bob" {
				w.WriteHeader(http.StatusCreated)
				return
			}
			switch r.Header.Get("X-End") {
			case "hang":
				bar.wait()
			case "refuse":
				w.WriteHeader(http.StatusConflict)
			case "break":
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		late := make(chan answer, 1)
		for _, end := range []string{"", "refuse", "break", "hang"} {
			a := testRequest{key: []string{"k-" + end}, header: http.Header{"X-End": {end}}}
			if end == "hang" {
				go func() {
					got, err := a.send(t, srv)
					check.NoError(t, err)
					late <- got
				}()
				<-bar.entered
			} else {
				_ = a.do(t, srv)
			}
		}
		fresh := testRequest{user: "bob", key: []string{"fresh"}, body: "other"}.do(t, srv)
		for _, end := range []string{"", "refuse", "break", "hang"} {
			got := testRequest{user: "bob", key: []string{"k-" + end}, body: "other"}.do(t, srv)
			if got.status != fresh.status || got.body != fresh.body || got.replayed() || len(got.header) != len(fresh.header) {
				t.Errorf("after %q bob gets %d %v, want what a fresh key gets", end, got.status, got.header)
			}
		}
		close(bar.open)
		<-late
	})
}

// TestUnmarshalableResultHasHappened: the first caller gets the response, retries
// are told that the operation succeeded, and it does not run again.
func TestUnmarshalableResultHasHappened(t *testing.T) {
	t.Parallel()
	type box struct{ Open func() } // no JSON
	for name, run := range map[string]func(b *testEngine) func(context.Context, semel.Call, order) (box, bool, error){
		"DoTx": func(b *testEngine) func(context.Context, semel.Call, order) (box, bool, error) {
			return func(ctx context.Context, c semel.Call, _ order) (box, bool, error) {
				return semel.DoTx(ctx, b.Engine, c, func(context.Context, semelTx) (box, error) { return box{func() {}}, nil })
			}
		},
		"Do": func(b *testEngine) func(context.Context, semel.Call, order) (box, bool, error) {
			return func(ctx context.Context, c semel.Call, _ order) (box, bool, error) {
				return semel.Do(ctx, b.Engine, c, func(context.Context) (box, error) { return box{func() {}}, nil })
			}
		},
	} {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		inner := run(b)
		h := check.Must(semelhttp.Handle(semelhttp.Endpoint[order, box]{
			Operation: semel.Define("op", semel.OperationOptions[order]{}), Decode: decodeOrder,
			Run: inner,
			Render: func(w http.ResponseWriter, r *http.Request, _ box) {
				created(n)(w, r)
			},
		}, options()))(t)
		srv := serve(t, h)
		wantFirst(t, testRequest{body: tea}.do(t, srv), http.StatusCreated, "run 1")
		for range 2 {
			wantProblem(t, testRequest{body: tea}.do(t, srv), http.StatusConflict, "result_unavailable")
		}
		if len(b.events.of(event.Tombstone)) != 1 {
			t.Errorf("%s: no tombstone was observed", name)
		}
	}
}
