package semelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/store"
)

// sendAlone sends a request that the HTTP client does not retry by itself, and
// reports whether it was answered.
func sendAlone(t *testing.T, a testRequest, base string) (answer, bool) {
	t.Helper()
	req := a.request(t, base)
	req.GetBody = nil
	resp, err := testClient.Do(req)
	if err != nil {
		return answer{}, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err == nil
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
					if err := s.creates(w, r); err != nil {
						t.Errorf("effect: %v", err)
					}
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
		if first.status != http.StatusServiceUnavailable || first.replayed() {
			t.Errorf("got %d %s", first.status, first.body)
		}
		close(bar.open)
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
			if err == nil {
				t.Error("the handler that was given up wrote into a transaction that is over")
			}
			wantFirst(t, again, http.StatusCreated, "made")
			s.wantHad(t, 2, 1)
		}
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

// TestSwallowedError: a handler ignores an error of its statement and reports
// success. If the database has rolled back, the response is not sent: there is no
// response without its effect.
func TestSwallowedError(t *testing.T) {
	t.Parallel()
	onWays(t, inATransaction, func(t *testing.T, s *protectedSite) {
		if s.spoil == nil {
			t.Skip("this store refuses no statement")
		}
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if s.ran.Load() > 1 {
				return s.creates(w, r)
			}
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			if err := s.spoil(r.Context()); err == nil {
				t.Error("the database takes what it should refuse")
			}
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, "all is well")
			return err
		})))
		got := s.ask().do(t, base)
		if got.status < 500 || strings.Contains(got.body, "well") {
			t.Errorf("got %d %s, want it not to be told", got.status, got.body)
		}
		if s.had() != 0 || s.record().State == store.Succeeded {
			t.Errorf("there are %d effects, and the record is %v", s.had(), s.record().State)
		}
		wantFirst(t, s.settled(t, base), http.StatusCreated, "made")
		s.wantHad(t, 2, 1)
	})
}

// TestCommitThenBreak: a failure after the effect was committed does not undo it,
// and the operation does not run again.
func TestCommitThenBreak(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w http.ResponseWriter){
		"500":   func(w http.ResponseWriter) { http.Error(w, "it broke", http.StatusInternalServerError) },
		"panic": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onWays(t, whileItRuns, func(t *testing.T, s *protectedSite) { // otherwise the commit comes after the handler
				act := s.handler(func(w http.ResponseWriter, r *http.Request) error {
					if s.outside {
						return s.effect(r.Context())
					}
					return s.creates(w, r)
				})
				base := serve(t, s.protect(t, options(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					act(w, r)
					end(w)
				})))
				_, _ = sendAlone(t, s.ask(), base)
				again := s.settled(t, base)
				if s.outside {
					wantProblem(t, again, http.StatusConflict, "outcome_unknown")
				} else {
					s.wantMade(t, again)
				}
				s.wantHad(t, 1, 1)
			})
		})
	}
}

// TestUnstorableResponseHasHappened: only the first caller gets the response, and
// the operation does not run again.
func TestUnstorableResponseHasHappened(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 128<<10) // 2 MiB
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, large)
			return err
		})))
		wantFirst(t, s.ask().do(t, base), http.StatusCreated, large)
		for range 2 {
			wantProblem(t, s.ask().do(t, base), http.StatusConflict, "result_unavailable")
		}
		s.wantHad(t, 1, 1)
		if r := s.record(); r.State != store.Succeeded {
			t.Errorf("the record is %v", r.State)
		}
	})
}

// TestStreamedResponseHasHappened, for entry points that can send the response
// before the outcome is stored.
func TestStreamedResponseHasHappened(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(w http.ResponseWriter) error{
		"flush": func(w http.ResponseWriter) error {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "raw")
			return http.NewResponseController(w).Flush()
		},
		"hijack": func(w http.ResponseWriter) error {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
			return rw.Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onWays(t, whileItRuns, func(t *testing.T, s *protectedSite) { // otherwise nothing is sent before the COMMIT
				base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
					if err := s.effect(r.Context()); err != nil {
						return err
					}
					return send(w)
				})))
				wantFirst(t, s.ask().do(t, base), http.StatusOK, "raw")
				wantProblem(t, s.settled(t, base), http.StatusConflict, "result_unavailable")
				s.wantHad(t, 1, 1)
			})
		})
	}
}

// TestUnavailableIsNeverStored: a 503 is no final answer.
func TestUnavailableIsNeverStored(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if s.ran.Load() > 2 {
				return s.creates(w, r)
			}
			if s.within {
				return io.ErrUnexpectedEOF // rolled back, then 500
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return nil
		})))
		for range 2 {
			if got := s.ask().do(t, base); got.status < 500 && got.status != http.StatusConflict || got.replayed() {
				t.Errorf("got %d %s", got.status, got.body)
			}
		}
		again := s.ask().do(t, base)
		if s.outside { // the operation may have happened: the problem says so, and the handler's response is not sent
			wantProblem(t, again, http.StatusConflict, "outcome_unknown")
			s.wantHad(t, 1, 0)
			return
		}
		wantFirst(t, again, http.StatusCreated, "made")
		s.wantHad(t, 3, 1)
	})
}
