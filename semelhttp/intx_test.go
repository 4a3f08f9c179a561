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
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
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
		check.NoError(t, err, "InTx")
		w.Header().Set("Location", "/ops/8")
		check.ResultIs(io.WriteString(w, "after"))(t, 0, semelhttp.ErrResponseClosed, "a write after InTx")
		check.ErrorIs(t, http.NewResponseController(w).Flush(), semelhttp.ErrResponseClosed, "Flush after InTx")
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
			check.NoError(t, err, "InTx")
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
					check.ErrorIs(t, err, errDomain, "InTx")
					c.then(w, r)
				})
				first := testRequest{}.do(t, srv)
				if c.body == "" {
					wantProblem(t, first, c.status, "unavailable")
				} else {
					wantFirst(t, first, c.status, c.body)
				}
				wantEffects(t, fx, 1, 0)
				check.Equal(t, b.record(t, "op", "k1").State, c.state, "the record")
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
		limit time.Duration // of the attempts to learn whether the transaction has committed
		fault func(*testEngine) storetest.Fault
		check func(*testing.T, *testEngine, answer)
	}{
		"not committed": {
			time.Minute,
			func(*testEngine) storetest.Fault { return storetest.Fault{Rollback: lost} },
			func(t *testing.T, b *testEngine, got answer) {
				wantFirst(t, got, 500, "sorry\n")
				check.Equal(t, b.record(t, "op", "k1").State, store.Pending, "the record")
			},
		},
		"unknown, committed after all": {
			time.Minute,
			func(*testEngine) storetest.Fault { return storetest.Fault{After: lost} },
			func(t *testing.T, b *testEngine, got answer) {
				wantFirst(t, got, 201, "created")
				check.Equal(t, b.record(t, "op", "k1").State, store.Succeeded, "the record")
			},
		},
		"unknown for good": {
			time.Second,
			func(b *testEngine) storetest.Fault { return b.store.lastReply() },
			func(t *testing.T, _ *testEngine, got answer) {
				wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestEngine(t, semel.Options{RecordTimeout: c.limit})
			srv := b.leasedServer(t, inTxOp(semel.Release), options(), func(w http.ResponseWriter, r *http.Request) {
				fault := c.fault(b)
				b.store.commit.Store(&fault)
				_, err := semel.InTx(r.Context(), b.Engine, func(context.Context, semelTx) (int, error) {
					w.WriteHeader(201)
					return io.WriteString(w, "created")
				})
				if err != nil {
					http.Error(w, "sorry", 500)
				}
			})
			c.check(t, b, testRequest{}.do(t, srv))
		})
	}
}

// lastReply loses the reply to a commit, and the store does not respond any more.
func (f *faultStore) lastReply() storetest.Fault {
	return storetest.Fault{After: storetest.ErrInjected, Reply: func() { f.down.Store(true) }}
}

// TestAtomicCommitFails: the handler's response is sent only if the commit
// succeeded.
func TestAtomicCommitFails(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{RecordTimeout: time.Second}), new(atomic.Int64)
	srv := b.atomicServer(t, define("op", plain{}), options(), created(n))
	fault := b.store.lastReply()
	b.store.commit.Store(&fault)
	got := testRequest{}.do(t, srv)
	wantProblem(t, got, http.StatusServiceUnavailable, "outcome_unknown")
	check.Equal(t, got.header.Get("Location"), "", "a header of the handler came through")
	b.store.down.Store(false)
	got = untilRecorded(t, srv, "unavailable") // it had committed
	if got.status != http.StatusCreated || got.body != "run 1" || !got.replayed() {
		t.Errorf("the retry got %d %q", got.status, got.body)
	}
}

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
		check.NoError(t, err, "InTx")
	})
	wantProblem(t, testRequest{}.do(t, srv), http.StatusServiceUnavailable, "outcome_unknown")
	wantFirst(t, testRequest{}.do(t, srv), http.StatusCreated, "")
	wantEffects(t, fx, 1, 1)
	if r := b.record(t, "op", "k1"); r.State != store.Succeeded || !r.Tainted {
		t.Errorf("the record is %v, tainted %v, want Succeeded and tainted", r.State, r.Tainted)
	}
}
