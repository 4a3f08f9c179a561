package semelhttp_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// TestLeasedStatuses: the consequences of a response without InTx.
func TestLeasedStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]store.State{
		200: store.Succeeded, 303: store.Succeeded, 400: store.Succeeded, 404: store.Succeeded, 409: store.Succeeded, 422: store.Succeeded,
		401: store.Pending, 403: store.Pending, 408: store.Pending, 413: store.Pending, 415: store.Pending,
		423: store.Pending, 425: store.Pending, 429: store.Pending,
		500: store.InDoubt, 503: store.InDoubt,
	} {
		for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
			b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
			srv := b.leasedServer(t, define("op", plain{OnError: onError}), options(), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprintf(w, "run %d", n.Add(1))
			})
			first := testRequest{client: noRedirect(testClient)}.do(t, srv)
			check.Equal(t, b.record(t, "op", "k1").State, want, "%d, keep %d: the record", status, onError)
			if want == store.InDoubt {
				wantProblem(t, first, http.StatusServiceUnavailable, "outcome_unknown")
				continue
			}
			wantFirst(t, first, status, "run 1")
			again := testRequest{client: noRedirect(testClient)}.do(t, srv)
			if want == store.Succeeded {
				wantReplay(t, again, first)
			} else {
				wantFirst(t, again, status, "run 2")
			}
		}
	}
}

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
