package semelhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// hangUpAt sends s's request, waits until bar holds it, hangs up, and lets the
// request continue after the server has noticed.
func hangUpAt(t *testing.T, s *protectedSite, base string, gone <-chan (<-chan struct{}), bar *barrier) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan answer) // closed if there is none
	go func() {
		defer close(done)
		if resp, err := testClient.Do(s.ask().request(t, base).WithContext(ctx)); err == nil {
			resp.Body.Close()
			done <- answer{status: resp.StatusCode}
		}
	}()
	bar.held(t, done)
	noticed := <-gone
	hangUp()
	if got, answered := <-done; answered {
		t.Errorf("the client that hung up has the answer %d", got.status)
	}
	<-noticed
	close(bar.open)
}

// watching returns options whose ScopeFunc reports for each request when its client
// has hung up.
func watching() (semelhttp.Options, <-chan (<-chan struct{})) {
	gone := make(chan (<-chan struct{}), 100)
	o := options()
	o.ScopeFunc = func(r *http.Request) (semel.Scope, error) {
		gone <- r.Context().Done()
		return byUser(r)
	}
	return o, gone
}

// TestHangUpDuringTheHandler: the handler continues, and the retry gets its
// response.
func TestHangUpDuringTheHandler(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		bar := newBarrier()
		o, gone := watching()
		base := serve(t, s.protect(t, o, s.handler(func(w http.ResponseWriter, r *http.Request) error {
			bar.wait()
			check.NoError(t, r.Context().Err(), "the handler's context has ended")
			return s.creates(w, r)
		})))
		hangUpAt(t, s, base, gone, bar)
		s.wantMade(t, s.settled(t, base))
		s.wantHad(t, 1, 1)
	})
}

// TestHangUpDuringTheCommit: the transaction commits once, although its client hung
// up.
func TestHangUpDuringTheCommit(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		bar := newBarrier()
		s.gate.Store(bar)
		defer s.gate.Store(nil)
		o, gone := watching()
		base := serve(t, s.protect(t, o, s.handler(s.creates)))
		hangUpAt(t, s, base, gone, bar)
		s.wantMade(t, s.settled(t, base))
		s.wantHad(t, 1, 1)
	})
}

// TestHangUpBeforeTheClaim: a request whose body ends early is refused, has no effect and
// leaves its key unused.
func TestHangUpBeforeTheClaim(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(s.creates)))
		conn := dialTo(t, base)
		defer conn.Close()
		fmt.Fprintf(conn, "POST /ops HTTP/1.1\r\nHost: h\r\nX-User: ann\r\nIdempotency-Key: %s\r\nContent-Length: 100\r\n\r\nhalf", s.key())
		check.Require(t, conn.(*net.TCPConn).CloseWrite())
		reply, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 400") || !strings.Contains(string(reply), "body_unreadable") {
			t.Errorf("got %q, %v, want 400 body_unreadable", reply, err)
		}
		if r := s.record(); r.State != store.Absent || s.ran.Load() != 0 {
			t.Errorf("the record is %v after %d runs, want none", r.State, s.ran.Load())
		}
		wantFirst(t, s.ask().do(t, base), http.StatusCreated, "made")
	})
}

// TestHangUpDuringTheResponse: the response is lost on the way; the retry gets it.
func TestHangUpDuringTheResponse(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 60_000)
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		over := make(chan struct{}, 10)
		inner := s.protect(t, options(), s.handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.effect(r.Context()); err != nil {
				return err
			}
			_, err := io.WriteString(w, large)
			return err
		}))
		base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { over <- struct{}{} }()
			inner.ServeHTTP(w, r)
		}))
		conn := dialTo(t, base)
		fmt.Fprintf(conn, "POST /ops HTTP/1.1\r\nHost: h\r\nX-User: ann\r\nContent-Type: application/json\r\n"+
			"Idempotency-Key: %s\r\nContent-Length: 7\r\n\r\n{\"n\":1}", s.key())
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Errorf("the response begins with %q, %v", line, err)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an end
		}
		conn.Close()
		<-over
		got := s.settled(t, base)
		if got.status != http.StatusOK || got.body != large || !got.replayed() {
			t.Errorf("the retry got %d and %d bytes, replayed %v", got.status, len(got.body), got.replayed())
		}
		s.wantHad(t, 1, 1)
	})
}

func dialTo(t *testing.T, base string) net.Conn {
	t.Helper()
	u := check.Must(url.Parse(base))(t)
	var d net.Dialer
	conn := check.Must(d.DialContext(t.Context(), "tcp", u.Host))(t)
	return conn
}

// TestEachCallOfTheStoreFails: each call of the store fails before it was applied,
// after it, and rolled back. Every response is true, and a retry settles the key: a
// reported effect exists once, and no effect exists twice.
func TestEachCallOfTheStoreFails(t *testing.T) {
	t.Parallel()
	const calls = 6 // more than one request needs
	onEveryStore(t, func(t *testing.T, r *setup) {
		for _, w := range entryPoints() {
			for _, fault := range []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()} {
				t.Run(fmt.Sprintf("%s, %v", w.name, fault), func(t *testing.T) {
					k := 1
					for k <= calls && failsAt(t, &protectedSite{setup: r, entryPoint: w, tag: fmt.Sprintf("%v%d", fault, k)}, k, fault) {
						k++
					}
					if k == 1 || k > calls {
						t.Errorf("%d calls failed, want some and not all", k-1)
					}
				})
			}
		}
	})
}

// failsAt lets the k-th call of the store from now on fail. It reports whether the
// first request made that call.
func failsAt(t *testing.T, s *protectedSite, k int, fault storetest.Fault) (reached bool) {
	t.Helper()
	base := serve(t, s.protect(t, options(), s.handler(s.creates)))
	left := k
	var mu sync.Mutex
	decide := func(storetest.Call) storetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			return fault
		}
		return storetest.Fault{}
	}
	s.faults.Store(&decide)
	first := s.ask().do(t, base)
	s.faults.Store(nil)
	mu.Lock()
	reached = left <= 0
	mu.Unlock()
	if first.status == http.StatusCreated && s.had() != 1 {
		t.Errorf("call %d: reported as done, with %d effects", k, s.had())
	}
	if first.status < 500 && first.status != http.StatusCreated {
		t.Errorf("call %d: got %d %s, of a store that fails", k, first.status, first.body)
	}
	again := s.settled(t, base)
	switch {
	case again.status == http.StatusCreated:
		if s.had() != 1 || again.body != "made" {
			t.Errorf("call %d: in the end %d %s, with %d effects", k, again.status, again.body, s.had())
		}
		if first.status == http.StatusCreated && !again.replayed() {
			t.Errorf("call %d: it was made, and made again", k)
		}
	case s.outside && again.status == http.StatusConflict:
		if first.status == http.StatusCreated || s.had() > 1 {
			t.Errorf("call %d: first %d, then %s, with %d effects", k, first.status, again.body, s.had())
		}
	default:
		t.Errorf("call %d: in the end %d %s", k, again.status, again.body)
	}
	return reached
}

// TestReplayAfterRestart: another process that opens the same database gives the
// response of the first one.
func TestReplayAfterRestart(t *testing.T) {
	t.Parallel()
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		base := serve(t, s.protect(t, options(), s.handler(s.creates)))
		wantFirst(t, s.ask().do(t, base), http.StatusCreated, "made")
		after := &protectedSite{setup: s.another(t), entryPoint: s.entryPoint}
		base = serve(t, after.protect(t, options(), after.handler(after.creates)))
		s.wantMade(t, after.ask().do(t, base))
		other := after.ask()
		other.body = "other"
		wantProblem(t, other.do(t, base), http.StatusUnprocessableEntity, "key_reused")
		s.wantHad(t, 1, 1)
		check.Equal(t, after.ran.Load(), 0, "the second process ran it again")
	})
}

// TestConcurrentRequestsToTwoServers: of all concurrent requests to two processes
// one runs, and every other gets its response or has to wait.
func TestConcurrentRequestsToTwoServers(t *testing.T) {
	t.Parallel()
	const callers = 200
	onEveryWay(t, func(t *testing.T, s *protectedSite) {
		bases := []string{serve(t, s.protect(t, options(), s.handler(s.creates)))}
		other := &protectedSite{setup: s.another(t), entryPoint: s.entryPoint}
		bases = append(bases, serve(t, other.protect(t, options(), other.handler(other.creates))))
		answers := make(chan answer, callers)
		for i := range callers {
			go func() {
				got, err := s.ask().send(t, bases[i%2])
				check.NoError(t, err)
				answers <- got
			}()
		}
		firsts := 0
		for range callers {
			switch got := <-answers; {
			case got.status == http.StatusCreated && got.body == "made":
				if !got.replayed() {
					firsts++
				}
			case got.status == http.StatusConflict:
			default:
				t.Errorf("got %d %s", got.status, got.body)
			}
		}
		check.Equal(t, firsts, 1, "answers are not marked as replays")
		s.wantMade(t, s.settled(t, bases[0]))
		check.Equal(t, s.ran.Load()+other.ran.Load(), 1, "the handler ran")
		check.Equal(t, max(s.had(), other.had()), 1, "there: effects")
	})
}
