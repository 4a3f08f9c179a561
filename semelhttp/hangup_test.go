package semelhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// protected returns h behind the three entry points, with an operation that waits.
func protected(t *testing.T, b *testEngine, h http.HandlerFunc) map[string]http.Handler {
	t.Helper()
	o := options()
	a := check.Must(semelhttp.Atomic(b.Engine, define("a", plain{Wait: time.Hour}), o))(t)
	m := check.Must(semelhttp.Middleware(b.Engine, define("m", plain{Wait: time.Hour}), o))(t)
	s := newShop(b, semel.OperationOptions[order]{Wait: time.Hour})
	run := s.Run
	s.Run = func(ctx context.Context, c semel.Call, in order) (receipt, bool, error) {
		return semel.Do(ctx, b.Engine, c, func(ctx context.Context) (receipt, error) {
			h(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody))
			v, _, err := run(ctx, semel.Define("inner", semel.OperationOptions[order]{}).Call(c.Scope(), c.Key(), in), in)
			return v, err
		})
	}
	e := check.Must(semelhttp.Handle(s.Endpoint, o))(t)
	return map[string]http.Handler{"atomic": a(h), "middleware": m(h), "endpoint": e}
}

// TestHangUpOfAFollower: a follower waits only as long as its client and changes
// nothing; the leader, whose client hung up too, continues to its end.
func TestHangUpOfAFollower(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"atomic", "middleware", "endpoint"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, bar := newTestEngine(t, semel.Options{}), newBarrier()
				h := protected(t, b, func(w http.ResponseWriter, r *http.Request) {
					bar.wait()
					check.NoError(t, r.Context().Err(), "the leader's context has ended")
					w.WriteHeader(http.StatusCreated)
				})[name]
				send := func() (answered <-chan int, hangUp context.CancelFunc) {
					ctx, hangUp := context.WithCancel(t.Context())
					codes := make(chan int, 1)
					go func() {
						w := httptest.NewRecorder()
						h.ServeHTTP(w, testRequest{body: tea}.request(t, "").WithContext(ctx))
						codes <- w.Code
					}()
					synctest.Wait()
					return codes, hangUp
				}
				leader, leaderGone := send()
				defer leaderGone()
				<-bar.entered
				leaves, gone := send()
				stays, stayGone := send()
				defer stayGone()
				gone()
				leaderGone()
				synctest.Wait()
				select {
				case code := <-leaves:
					check.Equal(t, code, http.StatusServiceUnavailable, "the follower that left was answered")
				default:
					t.Error("the follower waits on for a client that is gone")
				}
				close(bar.open)
				if first, second := <-leader, <-stays; first != http.StatusCreated || second != http.StatusCreated {
					t.Errorf("the leader answered %d and the follower that stayed %d, want 201", first, second)
				}
			})
		})
	}
}

// TestHangUpBeforeTheStart: the operation does not run for a client that hung up
// while its scope was determined, and its key stays unused.
func TestHangUpBeforeTheStart(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	atomicOp, leasedOp := define("a", plain{}), define("l", plain{})
	a := check.Must(semelhttp.Atomic(b.Engine, atomicOp, options()))(t)
	l := check.Must(semelhttp.Middleware(b.Engine, leasedOp, options()))(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for op, protect := range map[string]func(http.Handler) http.Handler{"a": a, "l": l} {
		h := protect(created(n))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, testRequest{}.request(t, "").WithContext(gone))
		if w.Code != http.StatusServiceUnavailable || n.Load() != 0 {
			t.Errorf("%s: %d after %d runs, want 503 and none", op, w.Code, n.Load())
		}
		if s := b.record(t, op, "k1").State; s != store.Absent && s != store.Pending {
			t.Errorf("%s: the record is %v", op, s)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, testRequest{}.request(t, ""))
		if w.Code != http.StatusCreated || n.Swap(0) != 1 {
			t.Errorf("%s: the retry got %d", op, w.Code)
		}
	}
}
