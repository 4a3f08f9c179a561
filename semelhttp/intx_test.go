package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

func inTxOp(onError semel.OnError) *semel.Operation[semelhttp.Request] {
	return define("op", plain{Policy: semel.Atomic(), OnError: onError})
}

// TestInTxStoresWhatWasWrittenInside, and nothing that was written later.
func TestInTxStoresWhatWasWrittenInside(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", "1")
		_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, tx semelTx) (struct{}, error) {
			fx.in(t, r.WithContext(ctx))
			w.Header().Set("Location", "/ops/7")
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, "inside")
			return struct{}{}, err
		})
		if err != nil {
			t.Errorf("InTx: %v", err)
		}
		w.Header().Set("Location", "/ops/8")
		if n, err := io.WriteString(w, "after"); n != 0 || !errors.Is(err, semelhttp.ErrResponseClosed) {
			t.Errorf("a write after InTx = %d, %v", n, err)
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, semelhttp.ErrResponseClosed) {
			t.Errorf("Flush after InTx: %v", err)
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, http.StatusCreated, "inside")
	if first.header.Get("Location") != "/ops/7" || first.header.Get("Etag") != "1" {
		t.Errorf("headers %v", first.header)
	}
	wantReplay(t, testRequest{}.do(t, srv), first)
	wantEffects(t, fx, 1, 1)
	late := b.events.of(event.AfterOutcome)
	if len(late) != 1 || !errors.Is(late[0].Err, semelhttp.ErrResponseClosed) {
		t.Errorf("observed %+v, want one event for the late writes", late)
	}
}

// TestInTxAlone: a handler that does nothing after InTx causes no alarm.
func TestInTxAlone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 204, 409, 500} { // InTx has committed, so the status does not matter
		b := newTestEngine(t, semel.Options{})
		fx := &effects{b: b}
		srv := b.leasedServer(t, inTxOp(semel.Keep), options(), func(w http.ResponseWriter, r *http.Request) {
			_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
				fx.in(t, r.WithContext(ctx))
				w.WriteHeader(status)
				return 0, nil
			})
			if err != nil {
				t.Errorf("InTx: %v", err)
			}
		})
		first := testRequest{}.do(t, srv)
		wantFirst(t, first, status, "")
		wantReplay(t, testRequest{}.do(t, srv), first)
		wantEffects(t, fx, 1, 1)
		if late := b.events.of(event.AfterOutcome); len(late) != 0 {
			t.Errorf("%d: observed %+v, want nothing", status, late)
		}
	}
}

// TestInTxWithoutAResponse fails without committing, because the function has
// written no response.
func TestInTxWithoutAResponse(t *testing.T) {
	t.Parallel()
	b := newTestEngine(t, semel.Options{})
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
			fx.in(t, r.WithContext(ctx))
			return 7, nil
		})
		if err == nil || !strings.Contains(err.Error(), "written no response") {
			t.Errorf("InTx = %v, want an error that says what to do", err)
		}
		_, _ = io.WriteString(w, "too late")
	})
	wantProblem(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "unavailable")
	wantEffects(t, fx, 1, 0)
}

var errDomain = errors.New("the domain says no")

// TestInTxRolledBack: what was written for the transaction is dropped with it, and
// the handler's later response is sent.
func TestInTxRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then   http.HandlerFunc
		status int
		body   string
		state  store.State
	}{
		"breaks":         {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusBadGateway) }, http.StatusBadGateway, "broken\n", store.Pending},
		"not allowed":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, http.StatusForbidden, "no\n", store.Pending},
		"refuses":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "taken", http.StatusConflict) }, http.StatusConflict, "taken\n", store.Succeeded},
		"says nothing":   {func(http.ResponseWriter, *http.Request) {}, 503, "", store.Pending},
		"claims success": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }, 503, "", store.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, onError := range []semel.OnError{semel.Release, semel.Keep} {
				b := newTestEngine(t, semel.Options{})
				fx := &effects{b: b}
				srv := b.leasedServer(t, inTxOp(onError), options(), func(w http.ResponseWriter, r *http.Request) {
					_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
						fx.in(t, r.WithContext(ctx))
						w.WriteHeader(http.StatusCreated)
						_, _ = io.WriteString(w, "created")
						return 0, errDomain
					})
					if !errors.Is(err, errDomain) {
						t.Errorf("InTx = %v", err)
					}
					c.then(w, r)
				})
				first := testRequest{}.do(t, srv)
				if c.body == "" {
					wantProblem(t, first, c.status, "unavailable")
				} else {
					wantFirst(t, first, c.status, c.body)
				}
				wantEffects(t, fx, 1, 0)
				if got := b.record(t, "op", "k1").State; got != c.state {
					t.Errorf("the record is %v, want %v", got, c.state)
				}
				if c.state == store.Succeeded {
					wantReplay(t, testRequest{}.do(t, srv), first)
				}
			}
		})
	}
}

// TestInTxAgain: after a rollback InTx may be called again, and the response of the
// last call is sent.
func TestInTxAgain(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	fx := &effects{b: b}
	srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
		for try := 1; try <= 2; try++ {
			_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (int, error) {
				fx.in(t, r.WithContext(ctx))
				w.WriteHeader(200 + try)
				fmt.Fprintf(w, "try %d", n.Add(1))
				if try == 1 {
					return 0, errDomain
				}
				return 0, nil
			})
			if (err != nil) != (try == 1) {
				t.Errorf("try %d: %v", try, err)
			}
		}
	})
	first := testRequest{}.do(t, srv)
	wantFirst(t, first, 202, "try 2")
	wantReplay(t, testRequest{}.do(t, srv), first)
	wantEffects(t, fx, 2, 1)
}

// TestInTxCommitFails: with proof that nothing happened the handler may respond;
// with an unknown effect only that is sent.
func TestInTxCommitFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		end   func(*testEngine) (store.Verdict, error)
		check func(*testing.T, *testEngine, answer)
	}{
		"not committed": {
			func(*testEngine) (store.Verdict, error) { return store.NotCommitted, lost },
			func(t *testing.T, b *testEngine, got answer) {
				wantFirst(t, got, 500, "sorry\n")
				if s := b.record(t, "op", "k1").State; s != store.Pending {
					t.Errorf("the record is %v, want Pending", s)
				}
			},
		},
		"unknown, committed after all": {
			func(*testEngine) (store.Verdict, error) { return store.Unknown, lost },
			func(t *testing.T, b *testEngine, got answer) {
				wantFirst(t, got, 201, "created")
				if s := b.record(t, "op", "k1").State; s != store.Succeeded {
					t.Errorf("the record is %v, want Succeeded", s)
				}
			},
		},
		"unknown for good": {
			func(b *testEngine) (store.Verdict, error) { b.store.down.Store(true); return store.Unknown, lost },
			func(t *testing.T, b *testEngine, got answer) {
				wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{RecordTimeout: 1 << 27})
			rolledBack := name == "not committed"
			srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
				end := func(store.Verdict, error) (store.Verdict, error) { return c.end(b) }
				b.store.commit.Store(&end)
				_, err := semel.InTx(r.Context(), b.Engine, func(context.Context, semelTx) (int, error) {
					w.WriteHeader(201)
					_, _ = io.WriteString(w, "created")
					if rolledBack {
						return 0, lost
					}
					return 0, nil
				})
				if err != nil {
					http.Error(w, "sorry", 500)
				}
			})
			c.check(t, b, testRequest{}.do(t, srv))
		})
	}
}

// TestAtomicCommitFails: the handler's response is sent only if the commit
// succeeded.
func TestAtomicCommitFails(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{RecordTimeout: 1 << 27}), new(atomic.Int64)
	srv := b.atomicServer(t, define("op", plain{}), options(), created(n))
	unknown := func(store.Verdict, error) (store.Verdict, error) {
		b.store.down.Store(true)
		return store.Unknown, errDown
	}
	b.store.commit.Store(&unknown)
	got := testRequest{}.do(t, srv)
	wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
	if got.header.Get("Location") != "" {
		t.Error("a header of the handler came through")
	}
	b.store.down.Store(false)
	got = testRequest{}.do(t, srv) // it had committed
	if got.status != http.StatusCreated || got.body != "run 1" || !got.replayed() {
		t.Errorf("the retry got %d %q", got.status, got.body)
	}
}
