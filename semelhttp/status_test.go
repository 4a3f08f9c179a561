package semelhttp_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// TestClassifyKnowsBetter: a status from 500 up can be known to be a refusal.
func TestClassifyKnowsBetter(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	op := define("op", plain{Classify: func(err error) store.Verdict {
		if s, ok := errtype.Find[*semelhttp.StatusError](err); ok && s.Status == http.StatusServiceUnavailable {
			return store.NotCommitted
		}
		return store.Unknown
	}})
	srv := b.leasedServer(t, op, options(), func(w http.ResponseWriter, r *http.Request) {
		if n.Load() == 0 {
			n.Add(1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		created(n)(w, r)
	})
	wantFirst(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "not now\n")
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "run 2")
}
