package semelhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// TestHangUpChangesNothing: the handler goes on undisturbed, and the answer is
// there for the retry.
func TestHangUpChangesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n, bar := newBench(t, semel.Options{}), new(atomic.Int64), newBarrier()
		gone := make(chan (<-chan struct{}), 10)
		o := options()
		o.ScopeFunc = func(r *http.Request) (semel.Scope, error) {
			gone <- r.Context().Done()
			return byUser(r)
		}
		srv := serve(b, define("op", plain{Wait: time.Minute}), o, func(w http.ResponseWriter, r *http.Request) {
			bar.wait()
			if err := r.Context().Err(); err != nil {
				t.Errorf("the handler's context has ended: %v", err)
			}
			created(n)(w, r)
		})
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := http.DefaultClient.Do(ask{}.request(t, srv).WithContext(ctx)); err == nil {
				resp.Body.Close()
				t.Error("the client that hung up has an answer")
			}
		}()
		<-bar.entered
		hangUp()
		<-done
		<-(<-gone) // the server has noticed
		close(bar.open)
		got := ask{}.do(t, srv) // waits for the first one, if that still runs
		if got.status != http.StatusCreated || got.body != "run 1" || !got.replayed() {
			t.Errorf("the retry got %d %q", got.status, got.body)
		}
	})
}

// TestGoneBeforeItBegan: a client that hung up while others were asked is not
// run for, and costs no key.
func TestGoneBeforeItBegan(t *testing.T) {
	t.Parallel()
	b, n := newBench(t, semel.Options{}), new(atomic.Int64)
	atomicOp, leasedOp := define("a", plain{}), define("l", plain{})
	a, err := semelhttp.Atomic(b.Engine, atomicOp, options())
	if err != nil {
		t.Fatal(err)
	}
	l, err := semelhttp.Middleware(b.Engine, leasedOp, options())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for op, protect := range map[string]func(http.Handler) http.Handler{"a": a, "l": l} {
		h := protect(created(n))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, ask{}.request(t, "").WithContext(gone))
		if w.Code != http.StatusServiceUnavailable || n.Load() != 0 {
			t.Errorf("%s: %d after %d runs, want 503 and none", op, w.Code, n.Load())
		}
		if s := b.record(t, op, "k1").State; s != store.Absent && s != store.Pending {
			t.Errorf("%s: the record is %v", op, s)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, ask{}.request(t, ""))
		if w.Code != http.StatusCreated || n.Swap(0) != 1 {
			t.Errorf("%s: the retry got %d", op, w.Code)
		}
	}
}
