package semelhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
)

// TestPipelined: two equal requests on one connection, the second sent before the
// first is answered.
func TestPipelined(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		conn := dialTo(t, serve(b, define("op", plain{}), options(), created(n)))
		defer conn.Close()
		const request = "POST /ops HTTP/1.1\r\nHost: h\r\nX-User: ann\r\nIdempotency-Key: k1\r\nContent-Length: 7\r\n\r\n{\"n\":1}"
		check.Must(io.WriteString(conn, strings.Repeat(request, 3)))(t)
		in := bufio.NewReader(conn)
		for i := range 3 {
			resp, err := http.ReadResponse(in, nil)
			check.Require(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "run 1" || err != nil || (resp.Header.Get(semelhttp.HeaderReplayed) == "true") != (i > 0) {
				t.Errorf("answer %d is %d %q, replayed %q", i+1, resp.StatusCode, body, resp.Header.Get(semelhttp.HeaderReplayed))
			}
		}
	})
}

// TestExpectContinue: a client that waits for 100 Continue, hangs up, and retries
// has not used its key the first time.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
		srv := serve(b, define("op", plain{}), options(), created(n))
		const head = "POST /ops HTTP/1.1\r\nHost: h\r\nX-User: ann\r\nIdempotency-Key: k1\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n"
		for i := range 2 {
			conn := dialTo(t, srv)
			in := bufio.NewReader(conn)
			fmt.Fprint(conn, head)
			if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
				t.Errorf("answered %q, %v", line, err)
			}
			if i == 1 {
				fmt.Fprint(conn, `{"n":1}`)
				_, _ = in.ReadString('\n')
				if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "201") {
					t.Errorf("answered %q, %v", line, err)
				}
			}
			conn.Close()
		}
		check.Equal(t, n.Load(), 1, "ran")
	})
}

// TestStreamsOfOneConnection: HTTP/2 sends the same request twice concurrently.
func TestStreamsOfOneConnection(t *testing.T) {
	t.Parallel()
	b, n := newTestEngine(t, semel.Options{}), new(atomic.Int64)
	protect := check.Must(semelhttp.Atomic(b.Engine, define("op", plain{Wait: time.Minute}), options()))(t)
	srv := httptest.NewUnstartedServer(protect(created(n)))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the client drops connections that it does not need any more
	srv.StartTLS()
	t.Cleanup(srv.Close)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := (testRequest{client: srv.Client()}).do(t, srv.URL); got.status != http.StatusCreated || got.body != "run 1" {
				t.Errorf("got %d %q", got.status, got.body)
			}
		})
	}
	wg.Wait()
	check.Equal(t, n.Load(), 1, "ran")
}

// TestReplaysHaveTheirOwnDate: headers of an exchange are those of the replay
// itself.
func TestReplaysHaveTheirOwnDate(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, serve serveFunc) {
		b := newTestEngine(t, semel.Options{})
		srv := serve(b, define("op", plain{}), options(), func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			for name, value := range map[string]string{
				"Date": "Mon, 01 Jan 2001 00:00:00 GMT", "Set-Cookie": "s=1", "Retry-After": "5", "RateLimit-Remaining": "3",
				"X-Request-Id": "1", "Age": "7", "Server-Timing": "db;dur=1", "Www-Authenticate": "Basic", "Cache-Control": "private",
				"Access-Control-Allow-Origin": "https://a.example", "Content-Security-Policy": "script-src 'nonce-1'",
				"Connection": "X-Hop", "X-Hop": "1", "Alt-Svc": "h3", "Strict-Transport-Security": "max-age=1",
			} {
				h.Set(name, value)
			}
			w.WriteHeader(http.StatusCreated)
		})
		_ = testRequest{}.do(t, srv)
		again := testRequest{}.do(t, srv)
		if !again.replayed() {
			t.Fatalf("got %d %v", again.status, again.header)
		}
		for name := range again.header {
			switch name {
			case "Date", "Content-Length", "Cache-Control", semelhttp.HeaderReplayed:
			default:
				t.Errorf("replayed %s: %q", name, again.header[name])
			}
		}
		if date, err := http.ParseTime(again.header.Get("Date")); err != nil || date.Year() == 2001 {
			t.Errorf("Date = %q, want the replay's own", again.header.Get("Date"))
		}
	})
}
