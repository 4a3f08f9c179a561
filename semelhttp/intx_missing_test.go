package semelhttp_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestHandlerWithoutInTx: a handler of an operation with policy Atomic that never called
// InTx may refuse. If it reports success or breaks off, the effect is unknown.
func TestHandlerWithoutInTx(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		unknown bool
		state   store.State
		tainted bool
	}{
		"says nothing":     {0, true, store.InDoubt, true},
		"reports success":  {http.StatusCreated, true, store.InDoubt, true},
		"redirects":        {http.StatusSeeOther, true, store.InDoubt, true},
		"refuses":          {http.StatusConflict, false, store.Succeeded, false},
		"refuses for now":  {http.StatusTooManyRequests, false, store.Pending, false},
		"reports an error": {http.StatusBadGateway, true, store.Pending, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
				b := newTestEngine(t, semel.Options{})
				srv := b.leasedServer(t, inTxOp(onError), options(), func(w http.ResponseWriter, _ *http.Request) {
					if c.status != 0 {
						w.WriteHeader(c.status)
					}
				})
				first := testRequest{}.do(t, srv)
				if c.unknown {
					wantProblem(t, first, http.StatusServiceUnavailable, "outcome_unknown")
				} else {
					wantFirst(t, first, c.status, "")
				}
				if r := b.record(t, "op", "k1"); r.State != c.state || r.Tainted != c.tainted {
					t.Errorf("the record is %v, tainted %v, want %v, %v", r.State, r.Tainted, c.state, c.tainted)
				}
				if c.state == store.InDoubt {
					wantProblem(t, testRequest{}.do(t, srv), http.StatusConflict, "outcome_unknown")
				}
			}
		})
	}
}

// TestErrorBeforeInTxIsUnknown: a handler that calls InTx in its second attempt only has
// one effect in the database, and the record says that the first attempt is unknown.
func TestErrorBeforeInTxIsUnknown(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx, broken := &effects{b: b}, true
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		if broken {
			broken = false
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
			fx.in(t, r.WithContext(ctx))
			w.WriteHeader(http.StatusCreated)
			return 0, nil
		})
		if err != nil {
			t.Errorf("InTx: %v", err)
		}
	})
	wantProblem(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "outcome_unknown")
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "")
	wantEffects(t, fx, 1, 1)
	if r := b.record(t, "op", "k1"); r.State != store.Succeeded || !r.Tainted {
		t.Errorf("the record is %v, tainted %v, want Succeeded and tainted", r.State, r.Tainted)
	}
}
