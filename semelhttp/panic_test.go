package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestPanicLeavesATrueRecord: the panic continues, the client sees a lost
// connection, and the record is as if the handler had not run.
func TestPanicLeavesATrueRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op     *semel.Operation[semelhttp.Request]
		leased bool
		inTx   bool
		state  store.State
		effect int
	}{
		"atomic":         {define("op", plain{}), false, false, store.Absent, 0},
		"atomic, leased": {define("op", plain{Policy: semel.Atomic(), Lease: 1 << 40}), false, false, store.Pending, 0},
		"hold":           {define("op", plain{}), true, false, store.InDoubt, 0},
		"before InTx":    {inTxOp(semel.Keep), true, false, store.Pending, 0},
		"after InTx":     {inTxOp(semel.Keep), true, true, store.Succeeded, 1},
	} {
		for _, value := range []any{"boom", http.ErrAbortHandler} {
			t.Run(fmt.Sprint(name, " ", value), func(t *testing.T) {
				t.Parallel()
				b := newTestEngine(t, semel.Options{})
				fx, seen := &effects{b: b}, make(chan any, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusCreated)
					if c.inTx {
						_, _ = semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
							fx.in(t, r.WithContext(ctx))
							return 0, nil
						})
					} else if !c.leased {
						fx.in(t, r)
					}
					panic(value)
				})
				protect, err := semelhttp.Middleware(b.Engine, c.op, options())
				if !c.leased {
					protect, err = semelhttp.Atomic(b.Engine, c.op, options())
				}
				check.Require(t, err)
				inner := protect(handler)
				srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() {
						seen <- recover()
						panic(http.ErrAbortHandler)
					}()
					inner.ServeHTTP(w, r)
				}))
				req := testRequest{}.request(t, srv)
				req.GetBody = nil // otherwise the client would retry by itself
				if got, err := testClient.Do(req); err == nil {
					got.Body.Close()
					t.Errorf("the client got %d, want a broken connection", got.StatusCode)
				}
				if got := <-seen; got != value {
					t.Errorf("recovered %v, want the handler's own %v", got, value)
				}
				check.Equal(t, b.record(t, "op", "k1").State, c.state, "the record")
				check.Equal(t, fx.committed(), c.effect, "effects")
			})
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
