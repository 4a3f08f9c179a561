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
				bar.held(t, late)
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

// TestUnmarshalableResultHasHappened: a Render that needs no JSON responds to the first
// caller; otherwise the first caller too is told, in the profile's format, that the operation
// succeeded. It does not run again.
func TestUnmarshalableResultHasHappened(t *testing.T) {
	t.Parallel()
	type box struct{ Open func() } // no JSON
	for _, row := range []struct {
		inTx, renders bool
		profile       semelhttp.Profile
	}{{true, true, semelhttp.Lenient}, {false, true, semelhttp.Lenient}, {true, false, semelhttp.Lenient}, {true, false, semelhttp.Stripe}} {
		b := newTestEngine(t, semel.Options{})
		ep := semelhttp.Endpoint[order, box]{
			Operation: semel.Define("op", semel.OperationOptions[order]{}), Decode: decodeOrder,
			Run: func(ctx context.Context, c semel.Call, _ order) (box, bool, error) {
				if row.inTx {
					return semel.DoTx(ctx, b.Engine, c, func(context.Context, semelTx) (box, error) { return box{func() {}}, nil })
				}
				return semel.Do(ctx, b.Engine, c, func(context.Context) (box, error) { return box{func() {}}, nil })
			},
		}
		if row.renders {
			ep.Render = func(w http.ResponseWriter, _ *http.Request, _ box) { w.WriteHeader(http.StatusCreated) }
		}
		srv := serve(t, check.Must(semelhttp.Handle(ep, profiled(row.profile)))(t))
		if row.renders {
			wantFirst(t, testRequest{body: tea}.do(t, srv), http.StatusCreated, "")
		}
		for range 2 {
			got := testRequest{body: tea}.do(t, srv)
			if row.profile == semelhttp.Stripe {
				wantStripe(t, got, http.StatusConflict, "invalid_request_error", "result_unavailable")
			} else {
				wantProblem(t, got, http.StatusConflict, "result_unavailable")
			}
		}
		check.Equal(t, len(b.events.of(event.Tombstone)), 1, "%+v: tombstones were observed", row)
	}
}
