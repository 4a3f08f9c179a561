package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// boasts sets headers of all kinds, one of them over an earlier value.
func boasts(h http.Header) {
	h.Set("Location", "/ours")
	h.Set("Set-Cookie", "ours=1")
	h["Vary"][0] = "ours"
	h.Add("Vary", "more")
}

// wantBefore checks that none of these headers is left.
func wantBefore(t *testing.T, h http.Header) {
	t.Helper()
	if h.Get("Set-Cookie") != "" || h.Get("Location") == "/ours" || fmt.Sprint(h["Vary"]) != "[before]" {
		t.Errorf("the handler's headers are left: %v", h)
	}
}

// TestPanicContinues: with the handler's own value and without its headers, so that an outer
// handler that recovers can respond from the start.
func TestPanicContinues(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		b := newTestEngine(t, semel.Options{})
		for op, protect := range map[string]func(http.Handler) http.Handler{
			"atomic": check.Must(semelhttp.Atomic(b.Engine, define("atomic", plain{}), options()))(t),
			"in_tx":  check.Must(semelhttp.Middleware(b.Engine, define("in_tx", plain{Policy: semel.Atomic(), OnError: semel.Keep}), options()))(t),
		} {
			h := protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				boasts(w.Header())
				panic(value)
			}))
			w := httptest.NewRecorder()
			w.Header().Set("Vary", "before")
			func() {
				defer func() { check.Equal(t, recover(), value, "%s: recovered", op) }()
				h.ServeHTTP(w, testRequest{}.request(t, ""))
			}()
			wantBefore(t, w.Header())
			if s := b.record(t, op, "k1").State; s != store.Absent && s != store.Pending {
				t.Errorf("%s: the record is %v, want one that may run again", op, s)
			}
		}
	}
}

// TestInTxPanicRecovered: a handler that recovers from a panic inside the
// transaction was rolled back and has not succeeded.
func TestInTxPanicRecovered(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }()
		_, _ = semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
			fx.in(t, r.WithContext(ctx))
			w.WriteHeader(http.StatusCreated)
			panic("boom")
		})
	})
	wantProblem(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "unavailable")
	wantEffects(t, fx, 1, 0)
	check.Equal(t, b.record(t, "op", "k1").State, store.Pending, "the record")
}

// tripping is an Observer that panics when an attempt has succeeded.
type tripping struct{}

func (tripping) Observe(_ context.Context, e event.Event) {
	if e.Kind == event.Succeeded {
		panic("told of a success")
	}
}

// TestCommittedResponseIsSentAfterAPanic: a handler that recovers from a panic
// after the commit, and responds again, gets the committed response sent.
func TestCommittedResponseIsSentAfterAPanic(t *testing.T) {
	t.Parallel()
	e := check.Must(semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Observer: tripping{}}))(t)
	protect := check.Must(semelhttp.Middleware(e, inTxOp(semel.Release), options()))(t)
	srv := serve(t, protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() == nil {
				t.Error("the Observer has not panicked")
			}
			w.WriteHeader(http.StatusInternalServerError)
		}()
		_, err := semel.InTx(r.Context(), e, func(context.Context, *memory.Tx) (int, error) {
			w.WriteHeader(http.StatusCreated)
			return io.WriteString(w, "inside")
		})
		t.Errorf("InTx has returned %v", err)
	})))
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "inside")
	wantReplay(t, testRequest{}.do(t, srv), first)
}

// TestGoexitIsNoEvidence: a handler that panics or ends its goroutine has not
// responded. A transaction is rolled back and the next attempt runs; otherwise the
// effect is unknown, and the operation does not run again.
func TestGoexitIsNoEvidence(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){
		"panic":           func() { panic("boom") },
		"ErrAbortHandler": func() { panic(http.ErrAbortHandler) },
		"Goexit":          runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryWay(t, func(t *testing.T, s *protectedSite) {
				base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
					check.NoError(t, s.creates(w, r), "effect")
					if s.ran.Load() == 1 {
						end()
					}
					return nil
				})))
				if got, ok := sendAlone(t, s.ask(), base); ok {
					t.Errorf("answered %d %s, want a broken connection", got.status, got.body)
				}
				again := s.settled(t, base)
				if s.outside {
					wantProblem(t, again, http.StatusConflict, "outcome_unknown")
					s.wantHad(t, 1, 1)
					return
				}
				wantFirst(t, again, http.StatusCreated, "made")
				s.wantHad(t, 2, 1)
			})
		})
	}
}
