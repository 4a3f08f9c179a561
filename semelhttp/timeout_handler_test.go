package semelhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
)

// TestTimeoutHandlerOutside responds for a handler that continues: the retry gets
// its response, and it does not run twice.
func TestTimeoutHandlerOutside(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		bar := newBarrier()
		inner := s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			bar.wait()
			return s.creates(w, r)
		}))
		slow := serve(t, givenUp(inner, bar.entered))
		base := serve(t, inner)
		wantFirst(t, s.ask().do(t, slow), http.StatusServiceUnavailable, "")
		close(bar.open)
		s.wantMade(t, s.settled(t, base))
		s.wantHad(t, 1, 1)
	})
}

// TestTimeoutHandlerInside abandons the handler while it continues. A transaction
// is rolled back, and the handler's later writes have no effect; otherwise the
// effect is unknown, and the operation does not run again. Within InTx nothing can
// commit, because a TimeoutHandler holds the response back until it is too late.
func TestTimeoutHandlerInside(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		bar, left := newBarrier(), make(chan error, 1)
		h := s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if s.ran.Load() > 1 {
				return s.creates(w, r)
			}
			bar.wait()
			err := leftBehind(t, func() error { return s.creates(w, r.WithContext(context.WithoutCancel(r.Context()))) })
			left <- err
			return err
		})
		hasty := serve(t, s.protect(t, options(), givenUp(h, bar.entered)))
		base := serve(t, s.protect(t, options(), http.TimeoutHandler(h, time.Hour, "timed out")))
		first := s.ask().do(t, hasty)
		close(bar.open)
		if first.status != http.StatusServiceUnavailable || first.replayed() || s.ran.Load() == 0 {
			t.Fatalf("got %d %s, after %d runs", first.status, first.body, s.ran.Load())
		}
		err := <-left
		again := s.settled(t, base)
		switch {
		case s.outside:
			wantProblem(t, again, http.StatusConflict, "outcome_unknown")
			s.wantHad(t, 1, 1)
		case s.within:
			if again.status < 500 || s.had() != 0 {
				t.Errorf("the retry got %d %s, with %d effects", again.status, again.body, s.had())
			}
		default:
			check.Fails(t, err, "the handler that was given up wrote into a transaction that is over")
			wantFirst(t, again, http.StatusCreated, "made")
			s.wantHad(t, 2, 1)
		}
	})
}

// givenUp returns h behind an http.TimeoutHandler that times out as soon as h has
// begun.
func givenUp(h http.Handler, entered <-chan struct{}) http.Handler {
	timeout := http.TimeoutHandler(h, time.Hour, "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, over := context.WithCancel(r.Context())
		defer over()
		go func() {
			select {
			case <-entered:
				over()
			case <-ctx.Done():
			}
		}()
		timeout.ServeHTTP(w, r.WithContext(ctx))
	})
}

// leftBehind runs what an abandoned handler does. It gets an error, and does not
// crash.
func leftBehind(t *testing.T, act func() error) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("a transaction that is over panics when it is used: %v", p)
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return act()
}
